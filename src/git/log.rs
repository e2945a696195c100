//! What was committed: who, when, why, and which files.

use jiff::Timestamp;

use super::{GitError, WorkTree};

/// One commit with the files that it changed, against its first parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub id: String,
    /// Its parents; the first is the branch that it was made on.
    pub parents: Vec<String>,
    /// Who wrote the change, as `Name <address>`.
    pub author: String,
    /// When it was committed.
    pub at: Timestamp,
    /// The whole message.
    pub message: String,
    /// What it changed.
    pub files: Vec<Changed>,
}

/// A file that a commit changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The path before, where it was renamed.
    pub from: Option<String>,
    /// The path; of a removed file, the one that it had.
    pub path: String,
    /// The blob before; None where the file was not there.
    pub old: Option<String>,
    /// The blob afterwards; None where the file was removed.
    pub blob: Option<String>,
    /// Whether the file was not there before, under whatever name.
    pub added: bool,
}

impl Commit {
    /// Returns the first line of the message.
    pub fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    /// Says that it is what an audit entry was read from.
    pub fn recorder(&self) -> String {
        format!("git commit {}", self.id.get(..12).unwrap_or_default())
    }

    /// Returns the trailers: the last paragraph, where every line of it is `Word: value`.
    pub fn trailers(&self) -> Vec<(&str, &str)> {
        let paragraph = self.message.trim_end().rsplit("\n\n").next();
        let lines = paragraph.unwrap_or_default().lines();
        let read: Option<Vec<(&str, &str)>> = lines
            .map(|line| {
                let (word, value) = line.split_once(": ")?;
                let is_word = word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
                (is_word && !word.is_empty()).then_some((word, value.trim()))
            })
            .collect();
        // A message of one paragraph has a subject and no trailers.
        match self.message.trim_end().contains("\n\n") {
            true => read.unwrap_or_default(),
            false => Vec::new(),
        }
    }

    /// Returns the text between the subject and the trailers.
    pub fn body(&self) -> String {
        let mut paragraphs: Vec<&str> = self.message.trim_end().split("\n\n").skip(1).collect();
        if !self.trailers().is_empty() {
            paragraphs.pop();
        }
        paragraphs.join("\n\n").trim().to_owned()
    }
}

/// Begins a commit; no path and no id begins so.
const BEGIN: &str = "\u{1}commit\u{1}";

impl WorkTree {
    /// Lists the commits of a revision, or those that it has and an older one does not, newest first.
    ///
    /// `paths` limits it to commits that changed one of them; without any, all commits are listed, and a
    /// merge with what it changed against its first parent.
    pub fn log(
        &self,
        revision: &str,
        since: Option<&str>,
        paths: &[&str],
    ) -> Result<Vec<Commit>, GitError> {
        let range = match since {
            Some(since) => format!("{since}..{revision}"),
            None => revision.to_owned(),
        };
        let format = format!("--format={BEGIN}%H%x00%P%x00%an <%ae>%x00%ct%x00%B%x00");
        let mut arguments = vec![
            "-c",
            "log.showSignature=false",
            "log",
            "-z",
            "--raw",
            "--no-abbrev",
            "--diff-merges=first-parent",
            "--find-renames",
            "--topo-order",
            format.as_str(),
            range.as_str(),
            "--",
        ];
        arguments.extend(paths);
        let output = self.output(self.root(), arguments, &[], b"")?;
        let text = super::told("log", output)?;
        Ok(text.split(BEGIN).skip(1).filter_map(read).collect())
    }
}

fn read(text: &str) -> Option<Commit> {
    let mut fields = text.split('\0');
    let id = fields.next()?.to_owned();
    let parents = fields.next()?.split(' ');
    let parents = parents.filter(|id| !id.is_empty()).map(str::to_owned);
    let mut commit = Commit {
        id,
        parents: parents.collect(),
        author: fields.next()?.to_owned(),
        at: Timestamp::from_second(fields.next()?.parse().ok()?).ok()?,
        message: fields.next()?.to_owned(),
        files: Vec::new(),
    };
    // `:mode mode id id STATUS`, then the path, or both paths of a rename.
    while let Some(field) = fields.next() {
        let Some(raw) = field.trim_start().strip_prefix(':') else {
            continue;
        };
        let words: Vec<&str> = raw.split(' ').collect();
        let [_, mode, old, blob, status] = words.as_slice() else {
            continue;
        };
        let renamed = status.starts_with(['R', 'C']);
        let first = fields.next()?.to_owned();
        let (from, path) = match renamed {
            true => (Some(first), fields.next()?.to_owned()),
            false => (None, first),
        };
        let removed = status.starts_with('D');
        // Links and submodules hold no documents.
        if !removed && !mode.starts_with("100") {
            continue;
        }
        let added = status.starts_with(['A', 'C']);
        commit.files.push(Changed {
            added,
            old: (!added).then(|| (*old).to_owned()),
            from: from.filter(|_| status.starts_with('R')),
            path,
            blob: (!removed).then(|| (*blob).to_owned()),
        });
    }
    Some(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(message: &str) -> Commit {
        Commit {
            id: String::new(),
            parents: Vec::new(),
            author: String::new(),
            at: Timestamp::UNIX_EPOCH,
            message: message.to_owned(),
            files: Vec::new(),
        }
    }

    #[test]
    fn trailers_are_the_last_paragraph() {
        for (message, trailers, body) in [
            ("subject\n", 0, ""),
            ("Fix: subject\n", 0, ""),
            (
                "subject\n\nbody: not a\ntrailer\n",
                0,
                "body: not a\ntrailer",
            ),
            ("subject\n\nwhy\n\nA: 1\nB-C: 2\n", 2, "why"),
            ("subject\n\nA: 1\n", 1, ""),
        ] {
            let commit = of(message);
            assert_eq!(commit.trailers().len(), trailers, "{message}");
            assert_eq!(commit.body(), body, "{message}");
        }
    }
}
