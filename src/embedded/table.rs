//! Table answers: the columns that kubectl prints.
