//! The tree that is evaluated: names resolved to functions, constants read, nesting bounded.

use super::functions::{Function, Pattern};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Constant {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Type(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

/// A field's name as written, and the property that it escapes where properties are declared.
#[derive(Debug)]
pub(super) struct Field {
    pub written: String,
    pub property: Option<String>,
}

#[derive(Debug)]
pub(super) enum Node {
    Constant(Constant),
    Name(String),
    /// `of.field`, `of.?field`.
    Select {
        of: Box<Node>,
        field: Field,
        optional: bool,
    },
    /// `has(of.field)`.
    Has {
        of: Box<Node>,
        field: Field,
    },
    /// `of[key]`, `of[?key]`.
    Index {
        of: Box<Node>,
        key: Box<Node>,
        optional: bool,
    },
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Not(Box<Node>),
    Negate(Box<Node>),
    Choose(Box<[Node; 3]>),
    Binary(Operator, Box<[Node; 2]>),
    /// Items, each with whether it is an optional that may be left out.
    List(Vec<(Node, bool)>),
    Map(Vec<(Node, Node, bool)>),
    Loop(Box<Loop>),
    Call(Box<Call>),
}

#[derive(Debug)]
pub(super) struct Call {
    pub function: Function,
    /// The receiver, if there is one, comes first.
    pub args: Vec<Node>,
    /// The regular expression, when it is written out and so compiled once.
    pub pattern: Option<Pattern>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    /// A list to a list, a map to a list, by key and value.
    TransformList,
    TransformMap,
    TransformMapEntry,
    /// An optional's value, if it has one.
    OptMap,
    OptFlatMap,
}

#[derive(Debug)]
pub(super) struct Loop {
    pub kind: LoopKind,
    pub range: Node,
    pub variable: String,
    /// The second variable: then the first is the index or key.
    pub value_variable: Option<String>,
    pub filter: Option<Node>,
    pub body: Node,
}
