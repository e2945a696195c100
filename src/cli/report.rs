//! Prints the results of a verb on many objects. As a table, each line is printed at once; as JSON or YAML, one value
//! is printed at the end.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::error::Error;
use super::output::{self, Format};
use super::target_object::TargetObject;
use super::told;
use crate::text;

/// Prints the results of a verb to stdout.
pub(super) struct Report<'o> {
    out: &'o mut dyn Write,
    format: Format,
    dry_run: bool,
    objects: Vec<Value>,
    printed: io::Result<()>,
}

impl<'o> Report<'o> {
    pub(super) fn new(out: &'o mut dyn Write, format: Format, dry_run: bool) -> Self {
        Self {
            out,
            format,
            dry_run,
            objects: Vec::new(),
            printed: Ok(()),
        }
    }

    /// Adds the result for an object. If the reader of stdout has closed the pipe, this is ignored, because the verb
    /// must continue.
    pub(super) fn add(&mut self, place: &TargetObject, word: &str) {
        self.add_labelled(&place.label(), place.namespace.as_deref(), word);
    }

    /// Adds the result for an object that is given by its label.
    pub(super) fn add_labelled(&mut self, label: &str, namespace: Option<&str>, word: &str) {
        let dry = if self.dry_run { " (dry run)" } else { "" };
        match self.format {
            Format::Table | Format::Wide => {
                self.print(&format!("{} {word}{dry}\n", text::line(label)));
            }
            Format::Name => self.print(&format!("{}\n", text::line(label))),
            Format::Json | Format::Yaml => {}
        }
        self.objects
            .push(json!({"name": label, "namespace": namespace, "result": word}));
    }

    /// Prints all results if the output format is JSON or YAML. `failed` says whether the verb has already failed and
    /// printed its error.
    pub(super) fn end(mut self, failed: bool, say: &mut dyn FnMut(String)) -> Result<(), Error> {
        let made = failed || !self.dry_run && !self.objects.is_empty();
        let objects = std::mem::take(&mut self.objects);
        let value = json!({"dryRun": self.dry_run, "objects": objects});
        match self.format {
            Format::Json => self.print(&output::json(&value)),
            Format::Yaml => self.print(&output::yaml(&value)),
            Format::Table | Format::Wide | Format::Name => {}
        }
        told(self.printed, made, say)
    }

    fn print(&mut self, text: &str) {
        if self.printed.is_ok() {
            let written = self.out.write_all(text.as_bytes());
            self.printed = written.and_then(|()| self.out.flush());
        }
    }
}
