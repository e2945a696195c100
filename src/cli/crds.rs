//! `bowline crds`: prints the CustomResourceDefinitions of bowline's kinds.

use clap::{Args, ValueEnum};
use kube::ResourceExt;
use serde_json::json;

use super::output;
use crate::api;

/// The arguments of `crds`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Form::Yaml)]
    output: Form,
}

/// The output formats of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// YAML, one document for each definition
    Yaml,
    /// JSON, one List of all definitions
    Json,
    /// Only the names, as kind/name, one per line
    Name,
}

pub fn run(arguments: &Arguments) -> String {
    match arguments.output {
        Form::Yaml => api::crds_yaml(),
        Form::Json => {
            output::json(&json!({"apiVersion": "v1", "kind": "List", "items": api::crds()}))
        }
        Form::Name => {
            let names = api::crds()
                .into_iter()
                .map(|definition| definition.name_any());
            let kind = "customresourcedefinition.apiextensions.k8s.io";
            names.map(|name| output::name_line(kind, &name)).collect()
        }
    }
}
