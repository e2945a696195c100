//! The tree of a compiled expression: functions are resolved, constants are parsed, and the nesting is
//! limited.

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

/// A field name as the source contains it, and the unescaped property name if the field name is escaped.
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
    /// A list literal. The boolean is true for an optional item (`[?x]`), which is left out if it is an empty
    /// optional.
    List(Vec<(Node, bool)>),
    Map(Vec<(Node, Node, bool)>),
    Loop(Box<Loop>),
    Call(Box<Call>),
}

#[derive(Debug)]
pub(super) struct Call {
    pub function: Function,
    /// The arguments; the receiver of a member call is the first one.
    pub args: Vec<Node>,
    /// The compiled regular expression; None if the pattern is not a literal.
    pub pattern: Option<Pattern>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    /// Converts a list or a map to a list; the body gets the index or key and the value.
    TransformList,
    TransformMap,
    TransformMapEntry,
    /// Converts the value of an optional; an empty optional stays empty.
    OptMap,
    OptFlatMap,
}

#[derive(Debug)]
pub(super) struct Loop {
    pub kind: LoopKind,
    pub range: Node,
    pub variable: String,
    /// The second variable; if it is set, the first variable is the index or key.
    pub value_variable: Option<String>,
    pub filter: Option<Node>,
    pub body: Node,
}
