//! The flags and variables that select a target from any directory and any shell.
//!
//! They are part of every command that bowline suggests to users, because the default flags and variables may differ
//! in the shell in which a user pastes the command.

use std::path::{Path, PathBuf};

use super::{Connection, Environment, Options, Target};
use crate::text::quoted;

/// The flags and variables that select one target. All paths are absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// The kubeconfig files that bowline read for the connection.
    kubeconfigs: Vec<PathBuf>,
    /// The context of the target. For a repository, the context of the cluster whose status the repository shows.
    /// None if the target has no context.
    context: Option<String>,
    /// The flag that selects an embedded store or a repository (`--embedded` or `--repo`), quoted for a
    /// shell. Empty for a cluster.
    flags: Vec<String>,
    /// The flags for commits in a repository (`--branch`, `--push`, `--remote`), quoted for a shell.
    commit_flags: Vec<String>,
    /// The value of `--namespace`. None if the suggested commands must not have this flag.
    namespace: Option<String>,
    /// The value of `--as`: the user to impersonate. None if bowline impersonates nobody.
    user: Option<String>,
    /// Whether kubectl can connect to the target.
    kubectl: bool,
}

impl Address {
    /// Returns the address of a connection, from its options and its environment.
    pub fn of(connection: &Connection, options: &Options, environment: &Environment) -> Self {
        let absolute = |path: &Path| match &environment.working_dir {
            Some(directory) => directory.join(path),
            None => path.to_owned(),
        };
        let mut address = Self {
            kubeconfigs: kubeconfigs(options, environment),
            namespace: Some(connection.namespace.clone()),
            user: options.impersonate.clone(),
            ..Self::default()
        };
        match &connection.target {
            Target::Context { name, .. } => {
                address.context = Some(name.clone());
                address.kubectl = true;
            }
            Target::Pod => address.kubectl = true,
            Target::Embedded { file } => {
                let file = absolute(file).to_string_lossy().into_owned();
                address.flags.push(quoted(&format!("--embedded={file}")));
            }
            Target::Repository { directory } => {
                let scope = connection.work_tree().map(|work| work.scope());
                let directory = absolute(scope.unwrap_or(directory));
                add(&mut address.flags, "--repo", &directory.to_string_lossy());
                let commits = &mut address.commit_flags;
                if let Some(branch) = &options.branch {
                    add(commits, "--branch", branch);
                }
                if options.push {
                    commits.push("--push".to_owned());
                }
                if let Some(remote) = &options.remote {
                    add(commits, "--remote", remote);
                }
                // For a repository, the context names only the cluster that reports the live state, so kubectl cannot
                // connect to the target.
                address.context.clone_from(&options.context);
            }
        }
        address
    }

    /// Returns the address of a connection to a repository, for callers that have no options and no environment.
    pub fn of_repository(connection: &Connection) -> Self {
        let options = Options {
            branch: connection
                .repository
                .as_ref()
                .and_then(|found| found.branch.clone()),
            ..Options::default()
        };
        Self::of(connection, &options, &Environment::default())
    }

    /// Returns the address of another context in the same kubeconfig files.
    pub fn of_other(&self, context: &str, namespace: &str) -> Self {
        Self {
            context: Some(context.to_owned()),
            namespace: Some(namespace.to_owned()),
            flags: Vec::new(),
            commit_flags: Vec::new(),
            kubectl: true,
            ..self.clone()
        }
    }

    /// Returns the address of the same target with another namespace.
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..self.clone()
        }
    }

    /// Returns whether the target is a cluster, so that kubectl can connect to it.
    pub fn is_cluster(&self) -> bool {
        self.kubectl
    }

    /// Returns the same address without a namespace, for commands that read all namespaces.
    pub fn everywhere(&self) -> Self {
        Self {
            namespace: None,
            ..self.clone()
        }
    }

    /// Returns a bowline command line with the flags and variables of the target added to `line`.
    pub fn bowline(&self, line: &str) -> String {
        let mut flags = self.flags.clone();
        // `bowline apply` and `bowline delete` make no commits, so they refuse the flags for commits.
        let mut without = ["bowline apply ", "bowline delete "].iter();
        if !without.any(|verb| line.starts_with(verb)) {
            flags.extend(self.commit_flags.iter().cloned());
        }
        flags.extend(self.context_flags());
        if let Some(namespace) = &self.namespace {
            add(&mut flags, "--namespace", namespace);
        }
        self.line(line, flags)
    }

    /// Returns a kubectl command line with the flags and variables of the target added to `line`, except
    /// `--namespace`, which the caller must add. None if kubectl cannot connect to the target.
    pub fn kubectl(&self, line: &str) -> Option<String> {
        self.kubectl.then(|| self.line(line, self.context_flags()))
    }

    /// Returns the command line that runs the controllers of the target for all namespaces. It has no `--as`, because
    /// the controllers must not impersonate a user.
    pub fn controller(&self) -> String {
        let everybody = Self {
            user: None,
            ..self.clone()
        };
        let flags = [everybody.flags.clone(), everybody.context_flags()].concat();
        everybody.line("bowline controller", flags)
    }

    /// Returns `--context`, and `--kubeconfig` if only one kubeconfig file was read.
    fn context_flags(&self) -> Vec<String> {
        let mut flags = Vec::new();
        if let Some(context) = &self.context {
            add(&mut flags, "--context", context);
            if let [file] = self.kubeconfigs.as_slice() {
                add(&mut flags, "--kubeconfig", &file.to_string_lossy());
            }
        }
        flags
    }

    fn line(&self, line: &str, mut flags: Vec<String>) -> String {
        let mut words = Vec::new();
        // `--kubeconfig` takes only one file, so several files are passed in the variable `KUBECONFIG`.
        if self.context.is_some()
            && self.kubeconfigs.len() > 1
            && let Ok(list) = std::env::join_paths(&self.kubeconfigs)
        {
            words.push(format!("KUBECONFIG={}", quoted(&list.to_string_lossy())));
        }
        if let Some(user) = &self.user {
            add(&mut flags, "--as", user);
        }
        words.push(line.to_owned());
        words.extend(flags);
        words.join(" ")
    }

    /// Returns the address of a context, for tests.
    pub fn of_context(context: &str, kubeconfig: &str, namespace: &str) -> Self {
        Self {
            kubeconfigs: vec![kubeconfig.into()],
            context: Some(context.to_owned()),
            namespace: Some(namespace.to_owned()),
            kubectl: true,
            ..Self::default()
        }
    }
}

/// Adds a flag and its value, quoted for a shell. If the value begins with `-`, the result is `--flag=value`, so that
/// it is not read as another flag.
fn add(flags: &mut Vec<String>, flag: &str, value: &str) {
    match value.starts_with('-') {
        true => flags.push(quoted(&format!("{flag}={value}"))),
        false => flags.extend([flag.to_owned(), quoted(value)]),
    }
}

/// Returns the absolute paths of the kubeconfig files that bowline reads.
pub(super) fn kubeconfigs(options: &Options, environment: &Environment) -> Vec<PathBuf> {
    let absolute = |file: PathBuf| match &environment.working_dir {
        Some(directory) => directory.join(file),
        None => file,
    };
    match &options.kubeconfig {
        Some(file) => vec![absolute(file.clone())],
        None => super::listed_kubeconfigs(environment)
            .into_iter()
            .map(absolute)
            .filter(|file| file.exists())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::{StoreFile, connect};

    const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: prod-eu
clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]
users: [{name: u, user: {}}]
contexts:
- {name: prod-eu, context: {cluster: c, user: u, namespace: shop}}
- {name: -odd, context: {cluster: c, user: u, namespace: shop}}
";

    async fn address(options: Options, environment: &Environment) -> Address {
        let connection = connect(&options, environment).await.unwrap();
        Address::of(&connection, &options, environment)
    }

    #[tokio::test]
    async fn a_copied_command_names_the_whole_target() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        let text = |name: &str| path(name).to_string_lossy().into_owned();
        std::fs::create_dir(path(".kube")).unwrap();
        for file in [".kube/config", "a", "b c"] {
            std::fs::write(path(file), KUBECONFIG).unwrap();
        }
        let environment = Environment {
            home: Some(home.path().to_owned()),
            working_dir: Some(home.path().to_owned()),
            user: "ana".to_owned(),
            ..Environment::default()
        };
        let with = |kubeconfig: &str| Environment {
            kubeconfig: Some(kubeconfig.into()),
            ..environment.clone()
        };
        let default = text(".kube/config");
        let (a, b) = (text("a"), text("b c"));

        // The command names the current context and the default file, because they may differ in another shell.
        let found = address(Options::default(), &environment).await;
        assert_eq!(
            found.bowline("bowline undo cart"),
            format!("bowline undo cart --context prod-eu --kubeconfig {default} --namespace shop")
        );
        assert_eq!(
            found.kubectl("kubectl get pods --namespace shop").unwrap(),
            format!("kubectl get pods --namespace shop --context prod-eu --kubeconfig {default}")
        );
        // The options: a relative path of a kubeconfig, a namespace, and a user to impersonate.
        let options = Options {
            kubeconfig: Some("b c".into()),
            context: Some("-odd".to_owned()),
            namespace: Some("other".to_owned()),
            impersonate: Some("tom o'neil".to_owned()),
            ..Options::default()
        };
        let absolute = Options {
            kubeconfig: Some(path("b c")),
            ..options.clone()
        };
        let connection = connect(&absolute, &environment).await.unwrap();
        let found = Address::of(&connection, &options, &environment);
        assert_eq!(
            found.bowline("bowline undo cart"),
            format!(
                r"bowline undo cart --context=-odd --kubeconfig '{b}' --namespace other --as 'tom o'\''neil'"
            )
        );
        // `KUBECONFIG` lists two files. In the first case, only one of the two files exists.
        let found = address(Options::default(), &with(&format!("{a}:missing"))).await;
        assert!(found.bowline("x").contains(&format!("--kubeconfig {a} ")));
        let found = address(Options::default(), &with(&format!("{a}:{b}"))).await;
        assert_eq!(
            found.bowline("bowline undo cart"),
            format!("KUBECONFIG='{a}:{b}' bowline undo cart --context prod-eu --namespace shop")
        );
    }

    #[test]
    fn a_command_that_makes_no_commit_has_no_flags_of_commits() {
        let address = Address {
            flags: vec!["--repo".to_owned(), "/shop".to_owned()],
            commit_flags: vec!["--push".to_owned()],
            ..Address::default()
        };
        for (line, expected) in [
            ("bowline undo cart", "bowline undo cart --repo /shop --push"),
            (
                "bowline delete pin cart",
                "bowline delete pin cart --repo /shop",
            ),
        ] {
            assert_eq!(address.bowline(line), expected);
        }
    }

    #[tokio::test]
    async fn a_store_is_named_by_its_absolute_path() {
        let home = tempfile::tempdir().unwrap();
        let environment = Environment {
            data_dir: Some(home.path().to_owned()),
            working_dir: Some(home.path().to_owned()),
            user: "ana".to_owned(),
            ..Environment::default()
        };
        let file = home.path().join("bowline.db");
        let options = Options {
            embedded: Some(StoreFile::Default),
            ..Options::default()
        };
        let found = address(options, &environment).await;
        assert_eq!(
            found.bowline("bowline gc"),
            format!(
                "bowline gc --embedded={} --namespace default",
                file.display()
            )
        );
        assert_eq!(
            found.controller(),
            format!("bowline controller --embedded={}", file.display())
        );
        assert_eq!(found.kubectl("kubectl get pods"), None);
        // In the command, the relative path with a space is absolute and quoted.
        let options = Options {
            embedded: Some(StoreFile::At("my shop.db".into())),
            ..Options::default()
        };
        let connection = connect(
            &Options {
                embedded: Some(StoreFile::At(home.path().join("my shop.db"))),
                ..Options::default()
            },
            &environment,
        )
        .await
        .unwrap();
        let connection = Connection {
            target: Target::Embedded {
                file: "my shop.db".into(),
            },
            ..connection
        };
        let found = Address::of(&connection, &options, &environment);
        assert_eq!(
            found.controller(),
            format!(
                "bowline controller '--embedded={}'",
                home.path().join("my shop.db").display()
            )
        );
    }
}
