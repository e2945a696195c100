//! The functions that take regular expressions. A search takes time linear in the text, and it costs more steps if
//! the compiled pattern is larger.

use regex::{Regex, RegexBuilder};

use super::super::CelError;
use super::super::meter::Meter;
use super::super::value::Val;
use super::{Function, mismatch};

/// The size limits for a compiled pattern, in bytes. [`Pattern::new`] tries them in ascending order to find the size
/// class of the pattern, because a search with a larger pattern costs more steps.
const SIZES: [usize; 4] = [8 << 10, 32 << 10, 128 << 10, 512 << 10];

#[derive(Debug, Clone)]
pub(in super::super) struct Pattern {
    regex: Regex,
    weight: u64,
}

impl Pattern {
    /// Compiles a regular expression.
    pub(in super::super) fn new(source: &str) -> Result<Self, CelError> {
        for (at, size) in SIZES.into_iter().enumerate() {
            match RegexBuilder::new(source)
                .size_limit(size)
                .dfa_size_limit(1 << 20)
                .nest_limit(50)
                .build()
            {
                Ok(regex) => {
                    return Ok(Self {
                        regex,
                        weight: 1 << (2 * at),
                    });
                }
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => {
                    let message = error.to_string();
                    let last = message.lines().last().unwrap_or_default();
                    return Err(CelError::failed(format!("invalid pattern: {last}")));
                }
            }
        }
        Err(CelError::failed("the pattern is too large"))
    }

    fn pay(&self, text: &str, meter: &mut Meter) -> Result<(), CelError> {
        meter.step(1 + (text.len() as u64).saturating_mul(self.weight) / 16)
    }
}

/// Calls a function that takes a regular expression. `fixed` is the pattern, if the compiler of the expression has
/// compiled it; None if the pattern is only known now.
pub(super) fn call<'a>(
    function: Function,
    fixed: Option<&Pattern>,
    args: &[Val<'a>],
    meter: &mut Meter,
) -> Result<Val<'a>, CelError> {
    let (Some(Val::Text(text)), Some(Val::Text(source))) = (args.first(), args.get(1)) else {
        return Err(mismatch("matches", args));
    };
    let made;
    let pattern = match fixed {
        Some(pattern) => pattern,
        None => {
            // The price of compiling a pattern at evaluation time: a short pattern takes tens of microseconds.
            meter.step(2000 + 50 * source.len() as u64)?;
            made = Pattern::new(source)?;
            &made
        }
    };
    pattern.pay(text, meter)?;
    match function {
        Function::Matches => Ok(Val::Bool(pattern.regex.is_match(text))),
        Function::Find => {
            let found = pattern.regex.find(text).map_or("", |found| found.as_str());
            meter.make(found.len())?;
            Ok(Val::text(found))
        }
        _ => {
            let most = match args.get(2) {
                None => usize::MAX,
                Some(Val::Int(most)) => usize::try_from(*most).unwrap_or(usize::MAX),
                Some(_) => return Err(mismatch("findAll", args)),
            };
            let mut items = Vec::new();
            for found in pattern.regex.find_iter(text).take(most) {
                meter.make(found.len() + std::mem::size_of::<Val<'_>>())?;
                // Each match is charged, because the search after it has costs even if the match is short.
                pattern.pay("", meter)?;
                items.push(Val::text(found.as_str()));
            }
            Ok(Val::list(items))
        }
    }
}
