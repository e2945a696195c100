//! Reads the contents of files in commits, one file at a time and each only up to a size limit, to save memory.

use super::arguments::Arguments;
use super::{GitError, WorkTree, complaint};

/// The limits for reading a blob.
#[derive(Clone, Copy, Debug)]
pub struct BlobLimits<'w> {
    /// The largest size of a blob in bytes.
    pub bytes: usize,
    /// The words to search for in a blob that is larger than `bytes`.
    pub words: &'w [&'w str],
}

/// The result of reading a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blob {
    /// The repository has no blob with the requested id or path.
    Missing,
    /// The blob is larger than the limit.
    TooLarge {
        size: usize,
        /// Whether the too large blob contains one of the words in [`BlobLimits::words`].
        has_word: bool,
    },
    /// The content of the blob.
    Whole(Vec<u8>),
}

impl Blob {
    /// Returns the content of the blob; None if the blob is missing or too large.
    pub fn whole(self) -> Option<Vec<u8>> {
        match self {
            Self::Whole(bytes) => Some(bytes),
            Self::Missing | Self::TooLarge { .. } => None,
        }
    }

    /// Returns whether the blob is too large and contains one of the words in [`BlobLimits::words`].
    pub fn is_unread_with_word(&self) -> bool {
        matches!(self, Self::TooLarge { has_word: true, .. })
    }
}

impl WorkTree {
    /// Returns the content of a file in a commit; None if the commit does not have the file, or if the file
    /// is larger than `limit` bytes.
    pub fn blob(
        &self,
        revision: &str,
        path: &str,
        limit: usize,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let limits = BlobLimits {
            bytes: limit,
            words: &[],
        };
        let blob = self.blob_named(&format!("{revision}:{path}"), limits)?;
        Ok(blob.whole())
    }

    /// Returns whether a commit contains a file with this path.
    pub fn has_file(&self, revision: &str, path: &str) -> Result<bool, GitError> {
        let question = Arguments::plain("cat-file", ["-e"]).operand(format!("{revision}:{path}"));
        let output = self.output(&self.root, &question, &[], b"")?;
        Ok(output.status.success())
    }

    /// Reads a few blobs by id or by `REVISION:PATH`, and returns them in the order of `names`. None stands for a
    /// blob that does not exist or is larger than `limit` bytes.
    pub fn blobs(&self, names: &[String], limit: usize) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        let limits = BlobLimits {
            bytes: limit,
            words: &[],
        };
        let mut found = vec![None; names.len()];
        self.each_blob(names, limits, &mut |at, blob| {
            if let Some(found) = found.get_mut(at) {
                *found = blob.whole();
            }
        })?;
        Ok(found)
    }

    /// Reads many blobs by id or by `REVISION:PATH`, with only one blob in memory at a time. Calls `take` for each
    /// blob in the order of `names`, with the index of the name.
    pub fn each_blob(
        &self,
        names: &[String],
        limits: BlobLimits<'_>,
        take: &mut dyn FnMut(usize, Blob),
    ) -> Result<(), GitError> {
        // git reads one name per line. A name that contains a line break is therefore read with a separate call.
        let mut begin = 0;
        for some in names.chunk_by(|one, other| !one.contains('\n') && !other.contains('\n')) {
            match some {
                [name] if name.contains('\n') => take(begin, self.blob_named(name, limits)?),
                some => self.each_blob_by_line(some, limits, &mut |at, blob| {
                    take(begin + at, blob);
                })?,
            }
            begin += some.len();
        }
        Ok(())
    }

    pub(super) fn blob_named(&self, name: &str, limits: BlobLimits<'_>) -> Result<Blob, GitError> {
        let question = Arguments::plain("cat-file", ["blob"]).operand(name);
        let mut content = Content::new(limits);
        let output = self.output_into(&question, b"", &mut |bytes| content.add(bytes))?;
        Ok(match output.status.success() {
            true => content.blob(),
            false => Blob::Missing,
        })
    }

    fn each_blob_by_line(
        &self,
        names: &[String],
        limits: BlobLimits<'_>,
        take: &mut dyn FnMut(usize, Blob),
    ) -> Result<(), GitError> {
        let asked: String = names
            .iter()
            .flat_map(|name| [name.as_str(), "\n"])
            .collect();
        let question = Arguments::plain("cat-file", ["--batch", "--buffer"]);
        let mut batch = Batch::new(limits);
        let output = self.output_into(&question, asked.as_bytes(), &mut |bytes| {
            batch.read(bytes, take);
        })?;
        if !output.status.success() {
            return Err(GitError::Refused {
                command: "cat-file".to_owned(),
                said: complaint(&output),
            });
        }
        match batch.is_broken || batch.count != names.len() {
            true => Err(GitError::NotUnderstood {
                command: "cat-file --batch",
            }),
            false => Ok(()),
        }
    }
}

/// The part of a blob that is in memory: the whole blob, or only its end if the blob is too large.
struct Content<'w> {
    limits: BlobLimits<'w>,
    size: usize,
    has_word: bool,
    /// The bytes of the blob that were read. For a too large blob only the last bytes, so that a word that starts in
    /// one piece and ends in the next is found.
    bytes: Vec<u8>,
}

impl<'w> Content<'w> {
    fn new(limits: BlobLimits<'w>) -> Self {
        Self {
            limits,
            size: 0,
            has_word: false,
            bytes: Vec::new(),
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.size = self.size.saturating_add(bytes.len());
        let is_searched = !self.limits.words.is_empty() && !self.has_word;
        if self.size <= self.limits.bytes || is_searched {
            self.bytes.extend(bytes);
        }
        if self.size <= self.limits.bytes {
            return;
        }
        let mut words = self.limits.words.iter();
        self.has_word |=
            words.any(|word| memchr::memmem::find(&self.bytes, word.as_bytes()).is_some());
        // The last bytes are kept, because a word may start in this piece and end in the next.
        let longest = self.limits.words.iter().map(|word| word.len()).max();
        let kept = longest.unwrap_or_default().saturating_sub(1);
        let done = self.bytes.len().saturating_sub(kept);
        self.bytes = self.bytes.split_off(done);
    }

    fn blob(self) -> Blob {
        match self.size > self.limits.bytes {
            true => Blob::TooLarge {
                size: self.size,
                has_word: self.has_word,
            },
            false => Blob::Whole(self.bytes),
        }
    }
}

/// Parses the output of `git cat-file --batch`. For a blob, the output is `ID blob SIZE`, a line break, the bytes of
/// the blob, and a line break; for commits and trees accordingly. For a missing object, the output is one line.
struct Batch<'w> {
    limits: BlobLimits<'w>,
    /// The number of objects that were parsed so far.
    count: usize,
    state: Expected<'w>,
    is_broken: bool,
}

enum Expected<'w> {
    /// The next bytes belong to a header line. Contains the part of the line that was already read.
    Header(Vec<u8>),
    /// The next bytes belong to an object. Contains the number of its bytes that were not read yet, and the content;
    /// None if the object is not a blob.
    Content(usize, Option<Content<'w>>),
    /// The next byte is the line break after an object.
    LineBreak,
}

impl<'w> Batch<'w> {
    fn new(limits: BlobLimits<'w>) -> Self {
        Self {
            limits,
            count: 0,
            state: Expected::Header(Vec::new()),
            is_broken: false,
        }
    }

    fn read(&mut self, mut bytes: &[u8], take: &mut dyn FnMut(usize, Blob)) {
        while !bytes.is_empty() && !self.is_broken {
            match &mut self.state {
                Expected::Header(line) => {
                    let end = memchr::memchr(b'\n', bytes);
                    let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
                    line.extend(part);
                    bytes = rest.get(1..).unwrap_or_default();
                    if end.is_some() {
                        let line = String::from_utf8_lossy(line).into_owned();
                        self.begin(&line, take);
                    }
                }
                Expected::Content(left, content) => {
                    let (part, rest) = bytes.split_at(bytes.len().min(*left));
                    if let Some(content) = content {
                        content.add(part);
                    }
                    *left -= part.len();
                    bytes = rest;
                    if *left == 0 {
                        let content = content.take();
                        self.end(content.map_or(Blob::Missing, Content::blob), take);
                        self.state = Expected::LineBreak;
                    }
                }
                Expected::LineBreak => {
                    let (first, rest) = bytes.split_at(1);
                    self.is_broken = first != b"\n";
                    bytes = rest;
                    self.state = Expected::Header(Vec::new());
                }
            }
        }
    }

    /// Parses a header line of `git cat-file --batch`.
    fn begin(&mut self, line: &str, take: &mut dyn FnMut(usize, Blob)) {
        let mut words = line.rsplitn(3, ' ');
        let (size, kind) = (words.next(), words.next());
        let size = size.and_then(|size| size.parse::<usize>().ok());
        let content = match (kind, size) {
            (Some("blob"), Some(size)) => Some((size, Some(Content::new(self.limits)))),
            (Some("tree" | "commit" | "tag"), Some(size)) => Some((size, None)),
            _ => None,
        };
        self.state = match content {
            None => {
                self.end(Blob::Missing, take);
                Expected::Header(Vec::new())
            }
            Some((0, content)) => {
                self.end(content.map_or(Blob::Missing, Content::blob), take);
                Expected::LineBreak
            }
            Some((size, content)) => Expected::Content(size, content),
        };
    }

    fn end(&mut self, blob: Blob, take: &mut dyn FnMut(usize, Blob)) {
        take(self.count, blob);
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: BlobLimits<'_> = BlobLimits {
        bytes: 8,
        words: &["bowline"],
    };

    #[test]
    fn a_blob_over_the_limit_is_not_kept_and_only_searched() {
        let too_large = |size: usize, has_word: bool| Blob::TooLarge { size, has_word };
        let whole = |text: &str| Blob::Whole(text.as_bytes().to_vec());
        let said = "aa blob 3\none\nbb missing\naa blob 0\n\nHEAD:a blob b.yaml missing\naa blob 8\n12345678\n\
                    aa tree 4\nx\n\nx\naa blob 12\nxxbowlinexxx\naa blob 9\n123456789\naa blob 1\nx\n";
        let expected = [
            whole("one"),
            Blob::Missing,
            whole(""),
            Blob::Missing,
            whole("12345678"),
            Blob::Missing,
            too_large(12, true),
            too_large(9, false),
            whole("x"),
        ];
        for piece in 1..said.len() {
            let (mut found, mut batch) = (Vec::new(), Batch::new(LIMITS));
            for bytes in said.as_bytes().chunks(piece) {
                batch.read(bytes, &mut |at, blob| {
                    assert_eq!(at, found.len());
                    found.push(blob);
                });
                if let Expected::Content(_, Some(content)) = &batch.state {
                    assert!(content.bytes.len() <= 8, "{piece}");
                }
            }
            assert!(!batch.is_broken && batch.count == expected.len(), "{piece}");
            assert_eq!(found, expected, "{piece}");
        }
    }
}
