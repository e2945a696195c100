//! Converts the pack of a fetched commit to an object database.
//!
//! This module computes the hash of every object itself, so that the sender cannot give an object a wrong id. A small
//! pack may unpack to a very large size, so the module first adds up the sizes that the pack declares for its
//! objects, including deltas.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use gix::error::ErrorExt;
use gix::hash::Kind;
use gix::odb::pack::data::input::{BytesToEntriesIter, Entry, EntryDataMode, Mode};
use gix::odb::pack::{data, index};

use super::budget::Budget;
use super::cache::failed;
use super::error::Cause;
use super::{Limits, chain};

/// The name of the file that contains a received pack.
pub(super) const RECEIVED: &str = "received.pack";

/// A delta begins with two numbers. They have at most this many bytes together.
const DELTA_HEAD: u64 = 20;

/// Converts the pack [`RECEIVED`] in a directory to a bare repository in this directory.
pub(super) fn unpack(
    directory: &Path,
    hash: Kind,
    limits: &Limits,
    budget: &Budget,
) -> Result<(), Cause> {
    let received = directory.join(RECEIVED);
    let home = directory.join("objects/pack");
    fs::create_dir_all(&home).map_err(failed(&home))?;
    let new_index = directory.join("received.idx");
    let mut out = io::BufWriter::new(File::create(&new_index).map_err(failed(&new_index))?);

    let broken = |error: gix::Error| {
        budget.verdict(|| Cause::Broken {
            why: budget.repeat(&chain(&error)),
        })
    };
    let input = Timed {
        file: File::open(&received).map_err(failed(&received))?,
        budget,
    };
    let entries = BytesToEntriesIter::new_from_header(
        BufReader::new(input),
        Mode::Verify,
        EntryDataMode::KeepAndCrc32,
        hash,
    )
    .map_err(broken)?;
    let version = entries.version();
    let mut entries = Bounded {
        entries,
        objects: 0,
        bytes: 0,
        limits,
        budget,
    };
    let outcome = index::write_data_iter_to_stream(
        index::Version::default(),
        || {
            let file =
                data::File::at(&received, hash).map_err(|error| io::Error::other(chain(&error)))?;
            Ok((entry_bytes, file))
        },
        &mut entries,
        Some(1),
        &mut gix::progress::Discard,
        &mut out,
        &AtomicBool::new(false),
        hash,
        usize::try_from(limits.object_bytes).ok(),
        version,
    )
    .map_err(broken)?;
    out.flush().map_err(failed(&new_index))?;

    let name = home.join(format!("pack-{}.pack", outcome.data_hash));
    fs::rename(&received, &name).map_err(failed(&name))?;
    let name = name.with_extension("idx");
    fs::rename(&new_index, &name).map_err(failed(&name))
}

fn entry_bytes(range: data::EntryRange, file: &data::File) -> Option<&[u8]> {
    file.entry_slice(range)
}

/// A reader of a pack file that fails after the deadline of the fetch.
struct Timed<'a> {
    file: File,
    budget: &'a Budget,
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.budget.remaining()?;
        self.file.read(buffer)
    }
}

/// An iterator over the entries of a pack. It fails when the sizes that they declare exceed the limits.
struct Bounded<'a, I> {
    entries: I,
    objects: u64,
    bytes: u64,
    limits: &'a Limits,
    budget: &'a Budget,
}

impl<I> Bounded<'_, I> {
    fn count(&mut self, entry: &Entry) -> io::Result<()> {
        let size = if entry.header.is_delta() {
            result_size(entry.compressed.as_deref().unwrap_or_default())?
        } else {
            entry.decompressed_size
        };
        self.objects += 1;
        self.bytes = self
            .bytes
            .saturating_add(size)
            .saturating_add(entry.decompressed_size);
        let (what, limit, unit) = if self.objects > self.limits.objects {
            (
                "the number of objects of the commit",
                self.limits.objects,
                "objects",
            )
        } else if self.bytes > self.limits.object_bytes {
            (
                "the uncompressed size of the commit",
                self.limits.object_bytes,
                "bytes",
            )
        } else {
            return Ok(());
        };
        Err(self.budget.stop(Cause::TooLarge { what, limit, unit }))
    }
}

impl<I: Iterator<Item = gix::Result<Entry>>> Iterator for Bounded<'_, I> {
    type Item = gix::Result<Entry>;

    // This iterator has no `size_hint`, because gix would allocate memory for all objects that the pack announces.
    fn next(&mut self) -> Option<Self::Item> {
        let mut entry = match self.entries.next()? {
            Ok(entry) => entry,
            error => return Some(error),
        };
        if let Err(error) = self.count(&entry) {
            return Some(Err(error.raise()));
        }
        entry.compressed = None;
        Some(Ok(entry))
    }
}

/// Returns the size of the object that a delta creates. `compressed` is the delta in the pack.
fn result_size(compressed: &[u8]) -> io::Result<u64> {
    let mut head = Vec::new();
    flate2::read::ZlibDecoder::new(compressed)
        .take(DELTA_HEAD)
        .read_to_end(&mut head)?;
    let mut bytes = head.into_iter();
    let mut number = || -> io::Result<u64> {
        let mut value = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = bytes
                .next()
                .ok_or_else(|| io::Error::other("a delta ends in its header"))?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(io::Error::other("the size in a delta has too many digits"))
    };
    number()?;
    number()
}
