//! The functions that expressions can call, with their prices in steps and bytes.

mod access;
mod convert;
mod format;
mod lists;
mod maps;
mod operators;
mod pattern;
mod quantity;
mod text;
mod time;

use std::rc::Rc;

use super::eval::Evaluation;
use super::tree::Call;
use super::value::{Text, Val};
use super::{CelError, TextFunction};

pub use operators::double_text;
pub(super) use operators::operate;
pub(super) use pattern::Pattern;
pub(super) use quantity::Quantity;
pub(super) use time::show_span;

/// A function that an expression can call. The compiler finds the function by its name in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    // The following functions take several types.
    Size,
    TypeOf,
    Dyn,
    // The following functions convert a value to another type.
    ToBool,
    ToBytes,
    ToDouble,
    ToInt,
    ToText,
    ToUint,
    // The following functions take strings; some of them also take lists.
    CharAt,
    Contains,
    EndsWith,
    Find,
    FindAll,
    Format,
    IndexOf,
    Join,
    LastIndexOf,
    LowerAscii,
    Matches,
    Quote,
    Replace,
    Reverse,
    Split,
    StartsWith,
    Substring,
    Trim,
    UpperAscii,
    // The following functions take lists.
    Distinct,
    First,
    Flatten,
    IsSorted,
    Last,
    Max,
    Min,
    Range,
    Slice,
    Sort,
    Sum,
    SetsContains,
    SetsEquivalent,
    SetsIntersects,
    // The following functions create or use optionals.
    HasValue,
    OptionalNone,
    OptionalOf,
    OptionalOfNonZero,
    Or,
    OrValue,
    OptionalValue,
    // The following functions take numbers.
    MathAbs,
    MathCeil,
    MathFloor,
    MathGreatest,
    MathLeast,
    MathRound,
    MathSign,
    MathTrunc,
    // The following functions encode or decode base64.
    Base64Decode,
    Base64Encode,
    // The following functions take timestamps or durations.
    Duration,
    Timestamp,
    Part(time::Part),
    // The following functions take quantities.
    IsQuantity,
    ToQuantity,
    QuantityIs(quantity::UnaryFunction),
    QuantityAdd,
    QuantitySubtract,
    QuantityCompare,
    QuantityIsGreater,
    QuantityIsLess,
    // The following functions exist only in templates.
    Merge,
    Named(TextFunctionNamed),
    // The following functions build a permission query or read its decision.
    Ask(access::Field),
    ServiceAccount,
    Check,
    Allowed,
    Errored,
    DecisionText,
}

/// A template function that the user of this crate supplies; see [`TextFunction`].
#[derive(Debug, Clone, Copy)]
pub(super) struct TextFunctionNamed {
    name: &'static str,
    function: TextFunction,
}

impl PartialEq for TextFunctionNamed {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for TextFunctionNamed {}

impl Function {
    /// Returns whether the second argument of this function is a regular expression.
    pub(super) fn takes_pattern(self) -> bool {
        matches!(self, Self::Matches | Self::Find | Self::FindAll)
    }
}

/// Returns the name of a CEL type as a static text; None if CEL has no type of this name.
pub(super) fn type_named(name: &str) -> Option<&'static str> {
    [
        "bool",
        "bytes",
        "double",
        "int",
        "list",
        "map",
        "null_type",
        "string",
        "type",
        "uint",
    ]
    .into_iter()
    .find(|known| *known == name)
}

/// Finds a function by its name and its number of arguments, not counting the receiver `x` of a call `x.name()`.
/// `member` is true for a call with a receiver.
pub(super) fn resolve(name: &str, member: bool, count: usize) -> Option<Function> {
    if member {
        return resolve_member(name, count);
    }
    use Function as F;
    Some(match (name, count) {
        ("size", 1) => F::Size,
        ("type", 1) => F::TypeOf,
        ("dyn", 1) => F::Dyn,
        ("bool", 1) => F::ToBool,
        ("bytes", 1) => F::ToBytes,
        ("double", 1) => F::ToDouble,
        ("int", 1) => F::ToInt,
        ("string", 1) => F::ToText,
        ("uint", 1) => F::ToUint,
        ("duration", 1) => F::Duration,
        ("timestamp", 1) => F::Timestamp,
        ("matches", 2) => F::Matches,
        ("optional.none", 0) => F::OptionalNone,
        ("optional.of", 1) => F::OptionalOf,
        ("optional.ofNonZeroValue", 1) => F::OptionalOfNonZero,
        ("lists.range", 1) => F::Range,
        ("sets.contains", 2) => F::SetsContains,
        ("sets.equivalent", 2) => F::SetsEquivalent,
        ("sets.intersects", 2) => F::SetsIntersects,
        ("strings.quote", 1) => F::Quote,
        ("math.abs", 1) => F::MathAbs,
        ("math.ceil", 1) => F::MathCeil,
        ("math.floor", 1) => F::MathFloor,
        ("math.greatest", 1..) => F::MathGreatest,
        ("math.least", 1..) => F::MathLeast,
        ("math.round", 1) => F::MathRound,
        ("math.sign", 1) => F::MathSign,
        ("math.trunc", 1) => F::MathTrunc,
        ("base64.decode", 1) => F::Base64Decode,
        ("base64.encode", 1) => F::Base64Encode,
        ("isQuantity", 1) => F::IsQuantity,
        ("quantity", 1) => F::ToQuantity,
        _ => return None,
    })
}

/// Finds a function that exists only in templates.
pub(super) fn resolve_for_template(
    name: &str,
    count: usize,
    texts: &'static [(&'static str, TextFunction)],
) -> Option<Function> {
    match (name, count) {
        ("omit", 0) => Some(Function::OptionalNone),
        ("merge", 2) => Some(Function::Merge),
        (_, 0) => None,
        _ => texts
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(name, function)| Function::Named(TextFunctionNamed { name, function })),
    }
}

fn resolve_member(name: &str, count: usize) -> Option<Function> {
    use Function as F;
    Some(match (name, count) {
        ("size", 0) => F::Size,
        ("charAt", 1) => F::CharAt,
        ("contains", 1) => F::Contains,
        ("endsWith", 1) => F::EndsWith,
        ("find", 1) => F::Find,
        ("findAll", 1 | 2) => F::FindAll,
        ("format", 1) => F::Format,
        ("indexOf", 1 | 2) => F::IndexOf,
        ("join", 0 | 1) => F::Join,
        ("lastIndexOf", 1 | 2) => F::LastIndexOf,
        ("lowerAscii", 0) => F::LowerAscii,
        ("matches", 1) => F::Matches,
        ("replace", 2 | 3) => F::Replace,
        ("reverse", 0) => F::Reverse,
        ("split", 1 | 2) => F::Split,
        ("startsWith", 1) => F::StartsWith,
        ("substring", 1 | 2) => F::Substring,
        ("trim", 0) => F::Trim,
        ("upperAscii", 0) => F::UpperAscii,
        ("distinct", 0) => F::Distinct,
        ("first", 0) => F::First,
        ("flatten", 0 | 1) => F::Flatten,
        ("isSorted", 0) => F::IsSorted,
        ("last", 0) => F::Last,
        ("max", 0) => F::Max,
        ("min", 0) => F::Min,
        ("slice", 2) => F::Slice,
        ("sort", 0) => F::Sort,
        ("sum", 0) => F::Sum,
        ("hasValue", 0) => F::HasValue,
        ("or", 1) => F::Or,
        ("orValue", 1) => F::OrValue,
        ("value", 0) => F::OptionalValue,
        ("add", 1) => F::QuantityAdd,
        ("sub", 1) => F::QuantitySubtract,
        ("compareTo", 1) => F::QuantityCompare,
        ("isGreaterThan", 1) => F::QuantityIsGreater,
        ("isLessThan", 1) => F::QuantityIsLess,
        ("serviceAccount", 2) => F::ServiceAccount,
        ("check", 1) => F::Check,
        ("allowed", 0) => F::Allowed,
        ("errored", 0) => F::Errored,
        ("reason" | "error", 0) => F::DecisionText,
        (name, 0 | 1) if name.starts_with("get") => F::Part(time::Part::named(name)?),
        (name, 0) => F::QuantityIs(quantity::UnaryFunction::named(name)?),
        (name, 1) => F::Ask(access::Field::named(name)?),
        _ => return None,
    })
}

/// Evaluates the arguments of a call, and calls its function.
pub(super) fn call<'a>(
    evaluation: &mut Evaluation<'a>,
    call: &'a Call,
) -> Result<Val<'a>, CelError> {
    // The argument of `or` and `orValue` is evaluated only if the optional is empty.
    if let (Function::Or | Function::OrValue, [of, other]) = (call.function, call.args.as_slice()) {
        return match evaluation.node(of)? {
            Val::Optional(None) => evaluation.node(other),
            Val::Optional(Some(value)) if call.function == Function::OrValue => {
                Ok((*value).clone())
            }
            value @ Val::Optional(_) => Ok(value),
            other => Err(mismatch("or", &[other])),
        };
    }
    let mut args = Vec::with_capacity(call.args.len());
    for arg in &call.args {
        args.push(evaluation.node(arg)?);
    }
    if let Function::Check = call.function {
        return access::check(evaluation, &args);
    }
    let meter = &mut evaluation.meter;
    use Function as F;
    match call.function {
        F::Size => size(&args, meter),
        F::TypeOf | F::Dyn => match (call.function, args.as_slice()) {
            (F::TypeOf, [of]) => Ok(Val::Type(of.type_name())),
            (_, [of]) => Ok(of.clone()),
            _ => Err(mismatch("dyn", &args)),
        },
        F::ToBool | F::ToBytes | F::ToDouble | F::ToInt | F::ToText | F::ToUint => {
            convert::call(call.function, &args, meter)
        }
        F::Base64Decode | F::Base64Encode => convert::call(call.function, &args, meter),
        F::MathAbs
        | F::MathCeil
        | F::MathFloor
        | F::MathGreatest
        | F::MathLeast
        | F::MathRound
        | F::MathSign
        | F::MathTrunc => operators::math(call.function, &args, meter),
        F::Matches | F::Find | F::FindAll => {
            pattern::call(call.function, call.pattern.as_ref(), &args, meter)
        }
        F::Format => format::call(&args, meter),
        F::IndexOf | F::LastIndexOf | F::Reverse => match args.first() {
            Some(Val::Text(_)) => text::call(call.function, &args, meter),
            _ => lists::call(call.function, &args, meter),
        },
        F::CharAt
        | F::Contains
        | F::EndsWith
        | F::Join
        | F::LowerAscii
        | F::Quote
        | F::Replace
        | F::Split
        | F::StartsWith
        | F::Substring
        | F::Trim
        | F::UpperAscii => text::call(call.function, &args, meter),
        F::Distinct
        | F::First
        | F::Flatten
        | F::IsSorted
        | F::Last
        | F::Max
        | F::Min
        | F::Range
        | F::Slice
        | F::Sort
        | F::Sum
        | F::SetsContains
        | F::SetsEquivalent
        | F::SetsIntersects => lists::call(call.function, &args, meter),
        F::HasValue | F::OptionalNone | F::OptionalOf | F::OptionalOfNonZero | F::OptionalValue => {
            optional(call.function, &args)
        }
        F::Duration | F::Timestamp | F::Part(_) => time::call(call.function, &args, meter),
        F::IsQuantity
        | F::ToQuantity
        | F::QuantityIs(_)
        | F::QuantityAdd
        | F::QuantitySubtract
        | F::QuantityCompare
        | F::QuantityIsGreater
        | F::QuantityIsLess => quantity::call(call.function, &args),
        F::Merge => maps::merge(&args, meter),
        F::Named(named) => {
            let text = text::joined(named.name, &args, meter)?;
            made_text((named.function)(&text), meter)
        }
        F::Ask(_) | F::ServiceAccount | F::Allowed | F::Errored | F::DecisionText => {
            access::call(call.function, &args)
        }
        F::Or | F::OrValue | F::Check => Err(mismatch("call", &args)),
    }
}

fn size<'a>(args: &[Val<'a>], meter: &mut super::meter::Meter) -> Result<Val<'a>, CelError> {
    let size = match args {
        [Val::Text(text)] => {
            meter.scan(text.len())?;
            Some(text.chars().count())
        }
        [Val::Bytes(bytes)] => Some(bytes.len()),
        [of] => of.list_len().or_else(|| of.map_len()),
        _ => None,
    };
    size.map(|size| Val::Int(size as i64))
        .ok_or_else(|| mismatch("size", args))
}

fn optional<'a>(function: Function, args: &[Val<'a>]) -> Result<Val<'a>, CelError> {
    Ok(match (function, args) {
        (Function::OptionalNone, []) => Val::Optional(None),
        (Function::OptionalOf, [value]) => Val::some(value.clone()),
        (Function::OptionalOfNonZero, [value]) => match is_zero(value) {
            true => Val::Optional(None),
            false => Val::some(value.clone()),
        },
        (Function::HasValue, [Val::Optional(value)]) => Val::Bool(value.is_some()),
        (Function::OptionalValue, [Val::Optional(Some(value))]) => (**value).clone(),
        (Function::OptionalValue, [Val::Optional(None)]) => {
            return Err(CelError::failed("the optional has no value"));
        }
        _ => return Err(mismatch("optional", args)),
    })
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null | Val::Bool(false) | Val::Int(0) | Val::Uint(0) | Val::Span(0) => true,
        Val::Double(double) => *double == 0.0,
        Val::Text(text) => text.is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        other => other.list_len().or_else(|| other.map_len()) == Some(0),
    }
}

/// Creates the error for arguments whose types the function does not support.
fn mismatch(function: &str, args: &[Val<'_>]) -> CelError {
    let types: Vec<_> = args.iter().map(Val::type_name).collect();
    CelError::failed(format!(
        "no such overload: {function}({})",
        types.join(", ")
    ))
}

fn made_text<'a>(text: String, meter: &mut super::meter::Meter) -> Result<Val<'a>, CelError> {
    meter.make(text.len())?;
    Ok(Val::Text(Text::Shared(Rc::from(text))))
}
