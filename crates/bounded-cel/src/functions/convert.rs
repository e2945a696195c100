//! The functions that convert between types.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::super::CelError;
use super::super::meter::Meter;
use super::super::value::Val;
use super::operators::show_double;
use super::time::show_span;
use super::{Function, made_text, mismatch};

/// Calls a conversion function, such as `int` or `string`.
pub(super) fn call<'a>(
    function: Function,
    args: &[Val<'a>],
    meter: &mut Meter,
) -> Result<Val<'a>, CelError> {
    let [value] = args else {
        return Err(mismatch("conversion", args));
    };
    match function {
        Function::ToBool => to_bool(value),
        Function::ToBytes => match value {
            Val::Bytes(_) => Ok(value.clone()),
            Val::Text(text) => {
                meter.make(text.len())?;
                Ok(Val::Bytes(text.as_bytes().into()))
            }
            _ => Err(mismatch("bytes", args)),
        },
        Function::ToDouble => match value {
            Val::Double(_) => Ok(value.clone()),
            Val::Int(int) => Ok(Val::Double(*int as f64)),
            Val::Uint(uint) => Ok(Val::Double(*uint as f64)),
            Val::Text(text) => text
                .trim()
                .parse()
                .map(Val::Double)
                .map_err(|_| invalid(value, "double")),
            _ => Err(mismatch("double", args)),
        },
        Function::ToInt => to_int(value),
        Function::ToUint => to_uint(value),
        Function::ToText => to_text(value, meter),
        Function::Base64Encode => match value {
            Val::Bytes(bytes) => {
                meter.make(bytes.len() * 4 / 3 + 4)?;
                Ok(Val::text(STANDARD.encode(bytes)))
            }
            _ => Err(mismatch("base64.encode", args)),
        },
        _ => match value {
            Val::Text(text) => {
                meter.make(text.len())?;
                STANDARD
                    .decode(text.as_bytes())
                    .or_else(|_| STANDARD_NO_PAD.decode(text.as_bytes()))
                    .map(|bytes| Val::Bytes(bytes.into()))
                    .map_err(|_| CelError::failed("the value is no base64 text"))
            }
            _ => Err(mismatch("base64.decode", args)),
        },
    }
}

fn invalid(value: &Val<'_>, to: &str) -> CelError {
    let from = value.type_name();
    CelError::failed(format!("type conversion error from '{from}' to '{to}'"))
}

fn to_bool<'a>(value: &Val<'a>) -> Result<Val<'a>, CelError> {
    match value {
        Val::Bool(_) => Ok(value.clone()),
        Val::Text(text) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
            _ => Err(invalid(value, "bool")),
        },
        _ => Err(mismatch("bool", std::slice::from_ref(value))),
    }
}

fn to_int<'a>(value: &Val<'a>) -> Result<Val<'a>, CelError> {
    let int = match value {
        Val::Int(int) => Some(*int),
        Val::Uint(uint) => i64::try_from(*uint).ok(),
        Val::Double(double) => kube_values::limit::whole(double.trunc()),
        Val::Text(text) => text.parse().ok(),
        Val::Time(time) => Some(time.as_second()),
        Val::Span(nanos) => Some(*nanos),
        _ => return Err(mismatch("int", std::slice::from_ref(value))),
    };
    int.map(Val::Int).ok_or_else(|| invalid(value, "int"))
}

fn to_uint<'a>(value: &Val<'a>) -> Result<Val<'a>, CelError> {
    let uint = match value {
        Val::Uint(uint) => Some(*uint),
        Val::Int(int) => u64::try_from(*int).ok(),
        Val::Double(double) if (0.0..18_446_744_073_709_551_616.0).contains(double) => {
            Some(*double as u64)
        }
        Val::Double(_) => None,
        Val::Text(text) => text.parse().ok(),
        _ => return Err(mismatch("uint", std::slice::from_ref(value))),
    };
    uint.map(Val::Uint).ok_or_else(|| invalid(value, "uint"))
}

fn to_text<'a>(value: &Val<'a>, meter: &mut Meter) -> Result<Val<'a>, CelError> {
    match value {
        Val::Text(_) => Ok(value.clone()),
        Val::Bool(is) => made_text(is.to_string(), meter),
        Val::Int(int) => made_text(int.to_string(), meter),
        Val::Uint(uint) => made_text(uint.to_string(), meter),
        Val::Double(double) => show_double(*double, meter),
        Val::Bytes(bytes) => {
            meter.make(bytes.len())?;
            match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Val::text(text)),
                Err(_) => Err(invalid(value, "string")),
            }
        }
        Val::Time(time) => made_text(time.to_string(), meter),
        Val::Span(nanos) => made_text(show_span(*nanos), meter),
        Val::Quantity(quantity) => made_text(quantity.to_string(), meter),
        Val::Type(name) => made_text((*name).to_owned(), meter),
        _ => Err(mismatch("string", std::slice::from_ref(value))),
    }
}
