//! The CEL macros that loop over lists and maps, such as `all` and `map`. Each iteration costs steps of the budget.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::CelError;
use super::eval::{Evaluated, Evaluation, needs_optional};
use super::tree::{Loop, LoopKind};
use super::value::{Key, Val};

impl<'a> Evaluation<'a> {
    pub(super) fn looped(&mut self, looped: &'a Loop) -> Evaluated<'a> {
        let range = self.node(&looped.range)?;
        if let LoopKind::OptMap | LoopKind::OptFlatMap = looped.kind {
            return self.opt_map(looped, range);
        }
        let pairs = looped.value_variable.is_some();
        let Some(count) = range.list_len().or_else(|| range.map_len()) else {
            return Err(CelError::failed(format!(
                "a {} cannot be looped over",
                range.type_name()
            )));
        };
        self.meter.range(count)?;
        let mut outcome = Outcome::new(looped.kind);
        if range.list_len().is_some() {
            for at in 0..count {
                let Some(item) = range.item(at) else { break };
                let index = pairs.then_some(Val::Int(at as i64));
                if self.turn(looped, index, item, &mut outcome)? {
                    break;
                }
            }
        } else {
            self.meter
                .make(count * 2 * std::mem::size_of::<Val<'_>>())?;
            for (key, value) in range.entries() {
                let (key, value) = match pairs {
                    true => (Some(Val::from(key)), value),
                    false => (None, Val::from(key)),
                };
                if self.turn(looped, key, value, &mut outcome)? {
                    break;
                }
            }
        }
        outcome.finish()
    }

    /// Runs one iteration of a loop. Returns true if the loop can end, because the remaining iterations cannot change
    /// its result.
    fn turn(
        &mut self,
        looped: &'a Loop,
        index: Option<Val<'a>>,
        item: Val<'a>,
        outcome: &mut Outcome<'a>,
    ) -> Result<bool, CelError> {
        let before = self.scope.len();
        match (index.clone(), &looped.value_variable) {
            (Some(index), Some(value)) => {
                self.scope.push((&looped.variable, index));
                self.scope.push((value, item.clone()));
            }
            _ => self.scope.push((&looped.variable, item.clone())),
        }
        let result = self.turn_inside(looped, index, item, outcome);
        self.scope.truncate(before);
        result
    }

    fn turn_inside(
        &mut self,
        looped: &'a Loop,
        index: Option<Val<'a>>,
        item: Val<'a>,
        outcome: &mut Outcome<'a>,
    ) -> Result<bool, CelError> {
        if let Some(filter) = &looped.filter
            && !self.truth(filter)?
        {
            return Ok(false);
        }
        match outcome {
            Outcome::All { failure } => match self.truth(&looped.body) {
                Ok(true) => {}
                Ok(false) => {
                    *outcome = Outcome::Settled(false);
                    return Ok(true);
                }
                Err(error) if error.is_limit() => return Err(error),
                Err(error) => *failure = failure.take().or(Some(error)),
            },
            Outcome::Exists { failure } => match self.truth(&looped.body) {
                Ok(false) => {}
                Ok(true) => {
                    *outcome = Outcome::Settled(true);
                    return Ok(true);
                }
                Err(error) if error.is_limit() => return Err(error),
                Err(error) => *failure = failure.take().or(Some(error)),
            },
            Outcome::One { found } => {
                if self.truth(&looped.body)? {
                    *found += 1;
                }
            }
            Outcome::List { items, keep } => {
                self.meter.make(std::mem::size_of::<Val<'_>>())?;
                match keep {
                    true => {
                        if self.truth(&looped.body)? {
                            items.push(item);
                        }
                    }
                    false => items.push(self.node(&looped.body)?),
                }
            }
            Outcome::Map { entries, whole } => {
                let made = self.node(&looped.body)?;
                if *whole {
                    for (key, value) in made.entries() {
                        self.insert(entries, &Val::from(key), value)?;
                    }
                } else {
                    let key = index.unwrap_or(Val::Null);
                    self.insert(entries, &key, made)?;
                }
            }
            Outcome::Settled(_) => return Ok(true),
        }
        Ok(false)
    }

    fn opt_map(&mut self, looped: &'a Loop, range: Val<'a>) -> Evaluated<'a> {
        let Val::Optional(value) = range else {
            return Err(needs_optional(&range));
        };
        let Some(value) = value else {
            return Ok(Val::Optional(None));
        };
        self.scope.push((&looped.variable, (*value).clone()));
        let result = self.node(&looped.body);
        self.scope.pop();
        let result = result?;
        match (looped.kind, &result) {
            (LoopKind::OptMap, _) => Ok(Val::some(result)),
            (_, Val::Optional(_)) => Ok(result),
            _ => Err(needs_optional(&result)),
        }
    }
}

enum Outcome<'a> {
    All {
        failure: Option<CelError>,
    },
    Exists {
        failure: Option<CelError>,
    },
    One {
        found: usize,
    },
    /// The result of the loop is a list. If `keep` is true, the list contains the items for which the loop body is
    /// true; otherwise it contains the values of the loop body.
    List {
        items: Vec<Val<'a>>,
        keep: bool,
    },
    /// The result of the loop is a map. If `whole` is true, the loop body returns map entries; otherwise it returns
    /// the new value of the current key.
    Map {
        entries: BTreeMap<Key<'a>, Val<'a>>,
        whole: bool,
    },
    Settled(bool),
}

impl<'a> Outcome<'a> {
    fn new(kind: LoopKind) -> Self {
        match kind {
            LoopKind::All => Self::All { failure: None },
            LoopKind::Exists => Self::Exists { failure: None },
            LoopKind::ExistsOne => Self::One { found: 0 },
            LoopKind::Filter => Self::List {
                items: Vec::new(),
                keep: true,
            },
            LoopKind::TransformMap => Self::Map {
                entries: BTreeMap::new(),
                whole: false,
            },
            LoopKind::TransformMapEntry => Self::Map {
                entries: BTreeMap::new(),
                whole: true,
            },
            LoopKind::Map | LoopKind::TransformList | LoopKind::OptMap | LoopKind::OptFlatMap => {
                Self::List {
                    items: Vec::new(),
                    keep: false,
                }
            }
        }
    }

    fn finish(self) -> Evaluated<'a> {
        match self {
            Self::All {
                failure: Some(error),
            }
            | Self::Exists {
                failure: Some(error),
            } => Err(error),
            Self::All { failure: None } => Ok(Val::Bool(true)),
            Self::Exists { failure: None } => Ok(Val::Bool(false)),
            Self::One { found } => Ok(Val::Bool(found == 1)),
            Self::List { items, .. } => Ok(Val::list(items)),
            Self::Map { entries, .. } => Ok(Val::Map(Rc::new(entries))),
            Self::Settled(is) => Ok(Val::Bool(is)),
        }
    }
}
