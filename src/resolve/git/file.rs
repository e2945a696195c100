//! Fetches a commit from a repository on this machine, without starting git: packs the objects of the commit, and
//! treats the pack as if a server had sent it.
//!
//! The repository's configuration cannot start a program, because only the object format is read from it.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gix::ObjectId;
use gix::objs::{CommitRefIter, Kind};
use gix::odb::pack::data::{self, entry::Header};
use gix::prelude::FindExt;

use super::budget::Budget;
use super::cache::failed;
use super::error::Cause;
use super::objects::Objects;
use super::pack::RECEIVED;
use super::{Limits, chain};

/// Packs the objects of a commit, without its history, into the file that a server's pack would have in a directory.
pub(super) fn receive(
    source: &Path,
    commit: ObjectId,
    directory: &Path,
    limits: &Limits,
    budget: &Budget,
) -> Result<(), Cause> {
    let repository = gix::open_opts(source, gix::open::Options::isolated()).map_err(|error| {
        Cause::NoRepository {
            why: budget.repeat(&chain(&error)),
        }
    })?;
    if repository.object_hash() != commit.kind() {
        return Err(Cause::OtherHash {
            ours: if commit.kind() == gix::hash::Kind::Sha1 {
                "sha1"
            } else {
                "sha256"
            },
            theirs: repository.object_hash().to_string(),
        });
    }
    let mut copy = Copy {
        repository: &repository,
        limits,
        budget,
        left_out: false,
    };
    let objects = copy.list(commit)?;
    copy.write(&objects, directory)?;
    if copy.left_out {
        Objects::note_left_out(directory, limits.file_bytes)?;
    }
    Ok(())
}

struct Copy<'a> {
    repository: &'a gix::Repository,
    limits: &'a Limits,
    budget: &'a Budget,
    left_out: bool,
}

impl Copy<'_> {
    fn broken(&self, why: String) -> Cause {
        self.budget.verdict(|| Cause::Broken {
            why: self.budget.repeat(&why),
        })
    }

    /// Returns the ids of a commit's objects that the cache needs: the commit, its trees and its files.
    fn list(&mut self, commit: ObjectId) -> Result<Vec<ObjectId>, Cause> {
        let mut buffer = Vec::new();
        let object = gix::objs::Find::try_find(&self.repository.objects, &commit, &mut buffer);
        let root = match object {
            Ok(Some(object)) if object.kind == Kind::Commit => {
                CommitRefIter::from_bytes(object.data, commit.kind())
                    .tree_id()
                    .map_err(|error| self.broken(chain(&error)))?
            }
            Ok(Some(object)) => {
                return Err(Cause::NoCommit {
                    why: format!("it is a {}", object.kind),
                });
            }
            Ok(None) => {
                return Err(Cause::NoCommit {
                    why: "it is not in the repository".to_owned(),
                });
            }
            Err(error) => return Err(self.broken(chain(&error))),
        };
        let mut seen = HashSet::from([root]);
        let mut ahead = vec![root];
        let mut objects = vec![commit, root];
        while let Some(tree) = ahead.pop() {
            self.budget
                .remaining()
                .map_err(|error| self.broken(error.to_string()))?;
            let bytes = self
                .repository
                .objects
                .find_tree_iter(&tree, &mut buffer)
                .map_err(|error| self.broken(chain(&error)))?;
            for entry in bytes {
                let entry = entry.map_err(|error| self.broken(chain(&error)))?;
                let id = entry.oid.to_owned();
                if entry.mode.is_commit() || !seen.insert(id) {
                    continue;
                }
                if entry.mode.is_tree() {
                    ahead.push(id);
                } else if self.is_large(&id)? {
                    self.left_out = true;
                    continue;
                }
                objects.push(id);
                if objects.len() as u64 > self.limits.objects {
                    return Err(Cause::TooLarge {
                        what: "the number of objects of the commit",
                        limit: self.limits.objects,
                        unit: "objects",
                    });
                }
            }
        }
        Ok(objects)
    }

    fn is_large(&self, blob: &ObjectId) -> Result<bool, Cause> {
        let header = gix::odb::HeaderExt::header(&self.repository.objects, blob)
            .map_err(|error| self.broken(chain(&error)))?;
        Ok(header.size() > self.limits.file_bytes)
    }

    fn write(&mut self, objects: &[ObjectId], directory: &Path) -> Result<(), Cause> {
        let path = directory.join(RECEIVED);
        let file = File::create(&path).map_err(failed(&path))?;
        let hash = self.repository.object_hash();
        let mut out = gix::hash::io::Write::new(io::BufWriter::new(file), hash);
        let count = u32::try_from(objects.len()).unwrap_or(u32::MAX);
        out.write_all(&data::header::encode(data::Version::V2, count))
            .map_err(failed(&path))?;
        let (mut buffer, mut entry) = (Vec::new(), Vec::new());
        for id in objects {
            self.budget
                .remaining()
                .map_err(|error| self.broken(error.to_string()))?;
            let object = self
                .repository
                .objects
                .find(id, &mut buffer)
                .map_err(|error| self.broken(chain(&error)))?;
            let header = match object.kind {
                Kind::Commit => Header::Commit,
                Kind::Tree => Header::Tree,
                Kind::Blob => Header::Blob,
                Kind::Tag => Header::Tag,
            };
            entry.clear();
            header
                .write_to(object.data.len() as u64, &mut entry)
                .map_err(failed(&path))?;
            let mut encoder = ZlibEncoder::new(&mut entry, Compression::fast());
            encoder.write_all(object.data).map_err(failed(&path))?;
            encoder.finish().map_err(failed(&path))?;
            self.budget
                .receive(entry.len())
                .map_err(|error| self.broken(error.to_string()))?;
            out.write_all(&entry).map_err(failed(&path))?;
        }
        let id = out
            .hash
            .try_finalize()
            .map_err(|error| self.broken(chain(&error)))?;
        let mut file = out.inner;
        file.write_all(id.as_slice()).map_err(failed(&path))?;
        file.flush().map_err(failed(&path))
    }
}
