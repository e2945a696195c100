//! The words of a command line that lead to the same target from any directory and any shell.
//!
//! Commands that people copy name the whole target: what a flag, a variable or a default decided here may
//! be decided otherwise where they paste it.

use std::path::{Path, PathBuf};

use super::{Connection, Environment, Options, Target};
use crate::text::quoted;

/// The flags that lead to one target; paths in them are absolute, and every word is quoted for a shell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// Several kubeconfig files, as the value of `KUBECONFIG`: no flag takes more than one.
    kubeconfigs: Option<String>,
    /// The flags for bowline but for the namespace and the user.
    bowline: Vec<String>,
    namespace: Vec<String>,
    user: Vec<String>,
    /// The flags for kubectl but for the namespace; None if kubectl does not reach the target.
    kubectl: Option<Vec<String>>,
}

impl Address {
    /// Reads the address of a connection off what led to it.
    pub fn of(connection: &Connection, options: &Options, environment: &Environment) -> Self {
        let absolute = |path: &Path| match &environment.working_dir {
            Some(directory) => directory.join(path),
            None => path.to_owned(),
        };
        let mut address = Self::default();
        match &connection.target {
            Target::Context { name, .. } => address.context(name, options, environment),
            Target::Pod => address.kubectl = Some(Vec::new()),
            Target::Embedded { file } => {
                let file = absolute(file).to_string_lossy().into_owned();
                address.bowline.push(quoted(&format!("--embedded={file}")));
            }
            Target::Repository { directory } => {
                let scope = connection.work_tree().map(|work| work.scope());
                let directory = absolute(scope.unwrap_or(directory));
                add(&mut address.bowline, "--repo", &directory.to_string_lossy());
                if let Some(branch) = &options.branch {
                    add(&mut address.bowline, "--branch", branch);
                }
                if options.push {
                    address.bowline.push("--push".to_owned());
                }
                if let Some(remote) = &options.remote {
                    add(&mut address.bowline, "--remote", remote);
                }
                if let Some(context) = &options.context {
                    address.context(context, options, environment);
                    // The cluster beside a repository only says what runs.
                    address.kubectl = None;
                }
            }
        }
        add(&mut address.namespace, "--namespace", &connection.namespace);
        if let Some(user) = &options.impersonate {
            add(&mut address.user, "--as", user);
            if let Some(kubectl) = &mut address.kubectl {
                add(kubectl, "--as", user);
            }
        }
        address
    }

    fn context(&mut self, name: &str, options: &Options, environment: &Environment) {
        let mut flags = Vec::new();
        add(&mut flags, "--context", name);
        let files = kubeconfigs(options, environment);
        match files.as_slice() {
            [] => {}
            [file] => add(&mut flags, "--kubeconfig", &file.to_string_lossy()),
            several => {
                let joined = std::env::join_paths(several).ok();
                self.kubeconfigs = joined.map(|list| list.to_string_lossy().into_owned());
            }
        }
        self.bowline.extend(flags.iter().cloned());
        self.kubectl = Some(flags);
    }

    /// Adds the target to a command line of bowline.
    pub fn bowline(&self, line: &str) -> String {
        let flags = [&self.bowline[..], &self.namespace, &self.user].concat();
        self.line(line, &flags)
    }

    /// Returns the command that runs the controllers of the target for all namespaces.
    pub fn controller(&self) -> String {
        self.line("bowline controller", &self.bowline)
    }

    /// Adds the target to a command line of kubectl that names its namespace; None if kubectl does not reach
    /// the target.
    pub fn kubectl(&self, line: &str) -> Option<String> {
        let flags = self.kubectl.as_ref()?;
        Some(self.line(line, flags))
    }

    fn line(&self, line: &str, flags: &[String]) -> String {
        let mut words = Vec::new();
        let variable = self.kubeconfigs.as_ref();
        words.extend(variable.map(|list| format!("KUBECONFIG={}", quoted(list))));
        words.push(line.to_owned());
        words.extend(flags.iter().cloned());
        words.join(" ")
    }

    /// Makes the address of a context, for tests.
    #[cfg(test)]
    pub fn of_context(context: &str, kubeconfig: &str, namespace: &str) -> Self {
        let flags: Vec<String> = ["--context", context, "--kubeconfig", kubeconfig]
            .map(str::to_owned)
            .into();
        let mut address = Self {
            bowline: flags.clone(),
            kubectl: Some(flags),
            ..Self::default()
        };
        add(&mut address.namespace, "--namespace", namespace);
        address
    }
}

/// Adds a flag and its value; a value that looks like a flag stands behind an equals sign.
fn add(flags: &mut Vec<String>, flag: &str, value: &str) {
    match value.starts_with('-') {
        true => flags.push(quoted(&format!("{flag}={value}"))),
        false => flags.extend([flag.to_owned(), quoted(value)]),
    }
}

/// Returns the kubeconfig files that were read, by their absolute paths.
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

        // The current context and the usual file are named too: elsewhere they may be others.
        let found = address(Options::default(), &environment).await;
        assert_eq!(
            found.bowline("bowline undo cart"),
            format!("bowline undo cart --context prod-eu --kubeconfig {default} --namespace shop")
        );
        assert_eq!(
            found.kubectl("kubectl get pods --namespace shop").unwrap(),
            format!("kubectl get pods --namespace shop --context prod-eu --kubeconfig {default}")
        );
        // A relative file, a namespace, a user.
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
        // One file of the variable that is there, and several.
        let found = address(Options::default(), &with(&format!("{a}:missing"))).await;
        assert!(found.bowline("x").contains(&format!("--kubeconfig {a} ")));
        let found = address(Options::default(), &with(&format!("{a}:{b}"))).await;
        assert_eq!(
            found.bowline("bowline undo cart"),
            format!("KUBECONFIG='{a}:{b}' bowline undo cart --context prod-eu --namespace shop")
        );
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
        // A relative path with a space: absolute and quoted.
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
