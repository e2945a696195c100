//! The tree of a compiled expression: its functions are found, its constants are parsed, and its nesting is within
//! the limit.

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

/// The name of a selected field: as in the source, and the unescaped property name if the source contains an escaped
/// name.
#[derive(Debug)]
pub(super) struct Field {
    pub written: String,
    pub property: Option<String>,
}

#[derive(Debug)]
pub(super) enum Node {
    Constant(Constant),
    Name(String),
    /// `of.field`, or `of.?field` if `optional` is true.
    Select {
        of: Box<Node>,
        field: Field,
        optional: bool,
    },
    /// The macro `has(of.field)`.
    Has {
        of: Box<Node>,
        field: Field,
    },
    /// `of[key]`, or `of[?key]` if `optional` is true.
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
    /// A list literal: its items, each with whether it is written as optional (`[?x]`). The list leaves out such an
    /// item if it is an empty optional.
    List(Vec<(Node, bool)>),
    Map(Vec<(Node, Node, bool)>),
    Loop(Box<Loop>),
    Call(Box<Call>),
}

#[derive(Debug)]
pub(super) struct Call {
    pub function: Function,
    /// The arguments of the call. If the call has a receiver, it is the first argument.
    pub args: Vec<Node>,
    /// The compiled regular expression of the call; None if the pattern is not a literal or the function takes none.
    pub pattern: Option<Pattern>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    /// Converts a list or a map to a list. The loop body gets the index or key, and the value.
    TransformList,
    TransformMap,
    TransformMapEntry,
    /// Converts the value of an optional. An empty optional stays empty.
    OptMap,
    OptFlatMap,
}

#[derive(Debug)]
pub(super) struct Loop {
    pub kind: LoopKind,
    pub range: Node,
    pub variable: String,
    /// The name of the second loop variable, for the value. If it is set, the first loop variable is the index or
    /// key.
    pub value_variable: Option<String>,
    pub filter: Option<Node>,
    pub body: Node,
}
