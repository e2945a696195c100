//! Replaces the parts of an output that always differ between two servers, so that the rest of the outputs
//! can be compared.

use std::sync::LazyLock;

use regex::Regex;

static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "UID",
        ),
        // The header of a diff contains a directory and a time of this run.
        (
            r"(?m)^(diff|---|\+\+\+).*?(LIVE|MERGED)-\d+/([^\s]+).*$",
            "$1 $2/$3",
        ),
        (
            r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)",
            "TIME",
        ),
        (
            r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}",
            "TIME",
        ),
        (r#"(resourceVersion"?: *\\?"?)\d+"#, "${1}RV"),
        (r"(Resource Version: *)\d+", "${1}RV"),
        (r"kubectl-edit-\d+", "kubectl-edit-NUMBER"),
        (r"\b\d+m?\d*s\b *", "AGE "),
        (r"\bAGE +", "AGE "),
    ]
    .into_iter()
    .map(|(pattern, instead)| (Regex::new(pattern).expect("a pattern of ours"), instead))
    .collect()
});

/// Replaces the parts of an output that always differ between two servers, such as times and addresses.
pub fn form(text: &str, server: &str, home: &str) -> String {
    let text = text.replace(server, "SERVER").replace(home, "HOME");
    let host = server.split_once("//").map_or(server, |(_, host)| host);
    let text = text.replace(host, "HOST");
    let text = RULES.iter().fold(text, |text, (pattern, instead)| {
        pattern.replace_all(&text, *instead).into_owned()
    });
    sorted(&text)
}

/// Sorts the parts of an output that have no fixed order. These are the causes of a failure, and the entries
/// of managedFields.
fn sorted(text: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut group: Vec<String> = Vec::new();
    let mut managed = None;
    let flush = |group: &mut Vec<String>, out: &mut Vec<String>| {
        group.sort();
        out.append(group);
    };
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        if managed
            .is_some_and(|at| depth < at || depth == at && !line.trim_start().starts_with('-'))
        {
            managed = None;
        }
        match managed {
            Some(at) if depth == at => group.push(line.to_owned()),
            Some(_) => match group.last_mut() {
                Some(entry) => entry.push_str(&format!("\n{line}")),
                None => out.push(line.to_owned()),
            },
            None if line.starts_with("* ") => group.push(line.to_owned()),
            None => {
                flush(&mut group, &mut out);
                if line.trim() == "managedFields:" {
                    managed = Some(depth);
                }
                out.push(line.to_owned());
            }
        }
    }
    flush(&mut group, &mut out);
    let end = if text.ends_with('\n') { "\n" } else { "" };
    out.join("\n") + end
}

/// Removes the descriptions from the output of `kubectl explain`, because the embedded API does not have them
/// for built-in kinds.
pub fn without_descriptions(text: &str) -> String {
    let mut kept = Vec::new();
    let mut describing = false;
    for line in text.lines() {
        if line.starts_with("DESCRIPTION:") {
            describing = true;
            continue;
        }
        if !line.is_empty() && !line.starts_with(' ') {
            describing = false;
        }
        let field = line.contains("\t<");
        if describing || line.trim().is_empty() || line.starts_with(' ') && !field {
            continue;
        }
        kept.push(line.trim_end());
    }
    kept.join("\n")
}

/// The API groups that only the real server has.
const ABSENT: [&str; 7] = [
    "apiregistration.k8s.io",
    "certificates.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "node.k8s.io",
    "resource.k8s.io",
    "internal.apiserver.k8s.io",
    "storagemigration.k8s.io",
];

/// Removes the lines with groups of [`ABSENT`], and the blanks that align columns.
pub fn without_absent_groups(text: &str) -> String {
    text.lines()
        .filter(|line| !ABSENT.iter().any(|group| line.contains(group)))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Removes the build information of the server from the output of `kubectl version`.
pub fn without_build(text: &str) -> String {
    let pattern = Regex::new(
        r#"(?m)^ *"?(buildDate|compiler|gitCommit|gitTreeState|goVersion|platform|gitVersion)"?:.*\n"#,
    )
    .expect("a pattern of ours");
    pattern.replace_all(text, "").replace("+embedded", "")
}

/// Removes the copy of the object from the error message about an invalid patch.
pub fn without_object(text: &str) -> String {
    let pattern = Regex::new(r#"(patch: Invalid value: )".*": "#).expect("a pattern of ours");
    pattern.replace_all(text, "$1OBJECT: ").into_owned()
}

/// Removes the line with the uid of a user from the output of `kubectl auth whoami`.
pub fn without_uid(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("UID "));
    lines.collect::<Vec<_>>().join("\n")
}

/// Removes the selector of a Job from an output, because the selector contains a uid.
pub fn without_selector(text: &str) -> String {
    text.replace("batch.kubernetes.io/controller-uid=UID", "<none>")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// Removes the log lines that kubectl itself writes to stderr.
pub fn without_complaints(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains("reflector.go"));
    lines.collect::<Vec<_>>().join("\n")
}
