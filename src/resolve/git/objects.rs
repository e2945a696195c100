//! Reads a commit in the cache: checks that all its objects exist, and returns the file at a path.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::hash::Kind;
use gix::objs::tree::{EntryKind, EntryMode};
use gix::objs::{self, CommitRefIter, TreeRefIter};
use gix::odb::pack::{Bundle, cache};

use super::budget::Budget;
use super::cache::failed;
use super::error::Cause;
use super::{Limits, chain};

/// The first bytes of a Git LFS pointer, which is in the repository in place of a large file.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The name of a file in a cached repository. The file contains a size in bytes: the server did not send files larger
/// than it.
const LEFT_OUT: &str = "left-out-over";

pub(super) struct Objects {
    bundle: Bundle,
    left_out_over: Option<u64>,
    inflate: gix::zlib::Inflate,
}

/// The reason why the cache cannot return a file.
pub(super) enum Missing {
    /// The commit does not have the file, or the file is refused, so another fetch would not help.
    Cause(Cause),
    /// The cached repository is damaged, so the commit must be fetched again. Contains the error.
    Damage(String),
}

impl From<Cause> for Missing {
    fn from(cause: Cause) -> Self {
        Missing::Cause(cause)
    }
}

impl Objects {
    /// Opens a cached repository, which has exactly one pack.
    pub fn open(directory: &Path, hash: Kind, limits: &Limits) -> Result<Self, String> {
        let packs = directory.join("objects/pack");
        let index = fs::read_dir(&packs)
            .map_err(|error| error.to_string())?
            .flatten()
            .map(|entry| entry.path())
            .find(|path| path.extension().is_some_and(|extension| extension == "idx"))
            .ok_or("there is no pack")?;
        let mut bundle = Bundle::at(index, hash).map_err(|error| chain(&error))?;
        bundle.pack = bundle
            .pack
            .with_alloc_limit_bytes(usize::try_from(limits.object_bytes).ok());
        let left_out_over = fs::read_to_string(directory.join(LEFT_OUT))
            .ok()
            .and_then(|text| text.trim().parse().ok());
        Ok(Self {
            bundle,
            left_out_over,
            inflate: gix::zlib::Inflate::default(),
        })
    }

    /// Records in a cached repository that the server did not send files larger than `over` bytes.
    pub fn note_left_out(directory: &Path, over: u64) -> Result<(), Cause> {
        let path = directory.join(LEFT_OUT);
        fs::write(&path, over.to_string()).map_err(failed(&path))
    }

    /// Reads an object, and verifies that its bytes match its id. None if the cached repository does not have the
    /// object.
    fn get(&mut self, id: &ObjectId, kind: objs::Kind) -> Result<Option<Vec<u8>>, String> {
        let mut out = Vec::new();
        let found = self
            .bundle
            .find(id, &mut out, &mut self.inflate, &mut cache::Never)
            .map_err(|error| chain(&error))?;
        let Some((object, _)) = found else {
            return Ok(None);
        };
        object.verify_checksum(id).map_err(|error| chain(&error))?;
        if object.kind != kind {
            return Err(format!("{id} is a {} and not a {kind}", object.kind));
        }
        Ok(Some(out))
    }

    fn need(&mut self, id: &ObjectId, kind: objs::Kind) -> Result<Vec<u8>, String> {
        self.get(id, kind)?
            .ok_or_else(|| format!("the {kind} {id} is missing"))
    }

    fn tree_of(&mut self, commit: &ObjectId) -> Result<ObjectId, String> {
        let bytes = self.need(commit, objs::Kind::Commit)?;
        CommitRefIter::from_bytes(&bytes, commit.kind())
            .tree_id()
            .map_err(|error| chain(&error))
    }

    /// Checks that the cached repository has all trees of a commit. Also checks that it has all files, unless the
    /// server did not send large files.
    pub fn check(&mut self, commit: &ObjectId, budget: &Budget) -> Result<(), Cause> {
        let broken = |why: String| Cause::Broken { why };
        let root = self.tree_of(commit).map_err(broken)?;
        let mut seen = HashSet::from([root]);
        let mut ahead = vec![root];
        while let Some(tree) = ahead.pop() {
            budget
                .remaining()
                .map_err(|error| budget.verdict(|| broken(error.to_string())))?;
            let bytes = self.need(&tree, objs::Kind::Tree).map_err(broken)?;
            for entry in TreeRefIter::from_bytes(&bytes, tree.kind()) {
                let entry = entry.map_err(|error| broken(chain(&error)))?;
                let id = entry.oid.to_owned();
                if entry.mode.is_commit() || !seen.insert(id) {
                    continue;
                }
                if entry.mode.is_tree() {
                    ahead.push(id);
                } else if self.left_out_over.is_none() && self.bundle.index.lookup(id).is_none() {
                    return Err(broken(format!("the blob {id} is missing")));
                }
            }
        }
        Ok(())
    }

    /// Returns the content of the file at a path in a commit. Fails if the content has more than `limit` bytes.
    pub fn file(&mut self, commit: &ObjectId, path: &str, limit: u64) -> Result<Vec<u8>, Missing> {
        let mut tree = self.tree_of(commit).map_err(Missing::Damage)?;
        let mut walked = String::new();
        let mut segments = path.split('/').peekable();
        while let Some(segment) = segments.next() {
            let bytes = self
                .need(&tree, objs::Kind::Tree)
                .map_err(Missing::Damage)?;
            let Some((mode, id)) = lookup(&bytes, tree.kind(), segment).map_err(Missing::Damage)?
            else {
                return Err(Cause::NoPath.into());
            };
            if !walked.is_empty() {
                walked.push('/');
            }
            walked.push_str(segment);
            match (mode.kind(), segments.peek().is_some()) {
                (EntryKind::Link, _) => return Err(Cause::SymbolicLink { at: walked }.into()),
                (EntryKind::Commit, _) => return Err(Cause::Submodule { at: walked }.into()),
                (EntryKind::Tree, true) => tree = id,
                (EntryKind::Tree, false) => return Err(Cause::Directory.into()),
                (EntryKind::Blob | EntryKind::BlobExecutable, true) => {
                    return Err(Cause::NoPath.into());
                }
                (EntryKind::Blob | EntryKind::BlobExecutable, false) => {
                    return self.blob(&id, limit);
                }
            }
        }
        Err(Cause::NoPath.into())
    }

    fn blob(&mut self, id: &ObjectId, limit: u64) -> Result<Vec<u8>, Missing> {
        let over = Cause::TooLarge {
            what: "the file",
            limit,
            unit: "bytes",
        };
        let Some(bytes) = self.get(id, objs::Kind::Blob).map_err(Missing::Damage)? else {
            return Err(match self.left_out_over {
                Some(size) if size >= limit => over.into(),
                _ => Missing::Damage(format!("the blob {id} is missing")),
            });
        };
        if u64::try_from(bytes.len()).map_or(true, |size| size > limit) {
            return Err(over.into());
        }
        if bytes.starts_with(LFS) {
            return Err(Cause::LfsPointer.into());
        }
        Ok(bytes)
    }
}

fn lookup(tree: &[u8], hash: Kind, name: &str) -> Result<Option<(EntryMode, ObjectId)>, String> {
    for entry in TreeRefIter::from_bytes(tree, hash) {
        let entry = entry.map_err(|error| chain(&error))?;
        if entry.filename.as_bytes() == name.as_bytes() {
            return Ok(Some((entry.mode, entry.oid.to_owned())));
        }
    }
    Ok(None)
}
