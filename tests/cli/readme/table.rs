//! The table of all code blocks in the documentation. It says how each block is tested.

use bowline::tui::keymap::Keymap;
use bowline::tui::theme::Theme;

/// A row of the table: the page of a code block, the start of the block's first line, and how the block is
/// tested.
#[derive(Debug)]
pub struct Entry {
    pub page: &'static str,
    pub begins: &'static str,
    pub how: How,
}

/// How a code block is tested.
#[derive(Debug)]
pub enum How {
    /// The block runs in a place, after preparing commands that the page assumes. It has one [`Line`] per
    /// command.
    Runs(Place, &'static [&'static str], &'static [Line]),
    /// The block runs on an embedded store behind `bowline serve`. The test uses a free port instead of the
    /// port of the page.
    Served,
    /// The block shows a message, and the function returns the real message to compare. If the block ends in
    /// `...`, only its start is compared.
    Message(fn() -> String),
    /// The block does not run. Contains the reason.
    NotRun(&'static str),
}

/// The target on which a block runs. All blocks of one page use the same target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The embedded store of a new home.
    Store,
    /// A git work tree in a new home.
    Repository,
    /// A real API server.
    Cluster,
}

/// A command of a block, and its expected result.
#[derive(Debug)]
pub struct Line {
    pub command: &'static str,
    /// The flags that the test adds to the command, because a test cannot answer questions.
    pub adds: &'static str,
    pub code: i32,
    /// A text that the output of the command must contain.
    pub says: &'static str,
    /// The reason why the test does not run the command; None if the command runs.
    pub not_run: Option<&'static str>,
}

const fn line(command: &'static str, code: i32, says: &'static str) -> Line {
    Line {
        command,
        adds: "",
        code,
        says,
        not_run: None,
    }
}

/// Returns a line for a command that asks on a terminal for a confirmation. The test confirms by a flag
/// instead.
const fn asks(command: &'static str, code: i32, says: &'static str) -> Line {
    Line {
        adds: " --yes",
        ..line(command, code, says)
    }
}

const fn not_run(command: &'static str, why: &'static str) -> Line {
    Line {
        not_run: Some(why),
        ..line(command, 0, "")
    }
}

const SYNOPSIS: &str = "a synopsis: brackets and capitals stand for words";
const CONFIGURATION: &str = "configuration, not a command";
const DEFINITION: &str = "a part of a definition, not a command";
const SECOND_CLUSTER: &str =
    "it needs two clusters; tests/controllers runs it with two API servers";
const APPLIED_BY_CONTROLLERS: &str = "tests/controllers runs these commands on a cluster";
const TYPED: &str = "text, not a command";

use How::{Message, NotRun, Runs, Served};
use Place::{Cluster, Repository, Store};

const fn entry(page: &'static str, begins: &'static str, how: How) -> Entry {
    Entry { page, begins, how }
}

/// Returns the error message about line 7 of an invalid keymap, which docs/keymaps.md shows.
fn message_of_keymap() -> String {
    let text = "base = 'emacs'\n\n\n[[list]]\non = 'W'\n\nrun = 'promot'\ndesc = 'promote'";
    let (_, faults) = Keymap::read("default", Some(("keymap.toml", text)));
    faults.iter().map(ToString::to_string).collect()
}

/// Returns the error message about line 9 of an invalid theme.
fn message_of_theme() -> String {
    let text = format!("{}[style]\ngood = 'gren'", "\n".repeat(7));
    let (_, faults) = Theme::read("mine.toml", &text, None);
    faults.iter().map(ToString::to_string).collect()
}

/// All code blocks, in the order of the pages.
pub const TABLE: &[Entry] = &[
    entry(
        "README.md",
        "cargo install --path .",
        NotRun("it installs the program that this test runs"),
    ),
    entry(
        "README.md",
        "bowline demo",
        Runs(Store, &[], &[line("bowline demo", 0, "COMPONENT")]),
    ),
    entry(
        "README.md",
        "bowline render -f",
        Runs(
            Store,
            &[],
            &[line(
                "bowline render -f deploy/examples checkout-service -e production-eu",
                0,
                "kind: Deployment",
            )],
        ),
    ),
    entry(
        "README.md",
        "bowline apply -f deploy/examples",
        Runs(
            Store,
            &[],
            &[
                line(
                    "bowline apply -f deploy/examples -R --embedded",
                    0,
                    "component.openchoreo.dev/cart created",
                ),
                line("bowline get components --embedded", 0, "checkout-service"),
            ],
        ),
    ),
    entry(
        "README.md",
        "bowline status",
        Runs(
            Store,
            &[],
            &[
                line(
                    "bowline status",
                    0,
                    "nothing is deployed in namespace default",
                ),
                line(
                    "bowline release create cart --version v1.2.3",
                    0,
                    "release.openchoreo.dev/cart-v1.2.3",
                ),
                line(
                    "bowline deploy cart -e development --release cart-v1.2.3 --wait --yes",
                    0,
                    "cart in development: nothing -> cart-v1.2.3 (revision 1)",
                ),
                line(
                    "bowline promote cart --from development --to staging --dry-run",
                    3,
                    "cart in staging: nothing -> cart-v1.2.3",
                ),
                line(
                    "bowline promote cart --from development --to staging --reason \"first release\" --wait --yes",
                    0,
                    "cart in staging: nothing -> cart-v1.2.3 (revision 1)",
                ),
                line(
                    "bowline promote cart --from staging --to production-eu --reason \"first release\" --wait --yes",
                    0,
                    "cart in production-eu: nothing -> cart-v1.2.3 (revision 1)",
                ),
                line(
                    "bowline pin cart -e production-eu --until 4h --reason INC-42 --yes",
                    0,
                    "cart in production-eu: cart-v1.2.3, 1 hold until ",
                ),
                line(
                    "bowline unpin cart -e production-eu --reason INC-42 --yes",
                    0,
                    "cart in production-eu: cart-v1.2.3, lifts the hold of ana: INC-42 (revision 3)",
                ),
                line(
                    "sed s/v0.9.0/v1.3.0/ deploy/examples/workloads/cart.yaml | bowline apply -f -",
                    0,
                    "workload.openchoreo.dev/cart configured",
                ),
                line(
                    "bowline deploy cart -e development --yes",
                    0,
                    "cart in development: cart-v1.2.3 -> cart-",
                ),
                line(
                    "bowline promote cart --from development --to staging --reason \"faster cart\" --yes",
                    0,
                    "cart in staging: cart-v1.2.3 -> cart-",
                ),
                line(
                    "bowline diff cart --from staging --to production-eu",
                    0,
                    "registry.example/shop/cart:v1.3.0",
                ),
                line(
                    "bowline promote cart --from staging --to production-eu --reason \"faster cart\" --yes",
                    0,
                    "cart in production-eu: cart-v1.2.3 -> cart-",
                ),
                line(
                    "bowline rollback cart -e production-eu --to cart-v1.2.3 --reason INC-43 --yes",
                    0,
                    "-> cart-v1.2.3, 1 hold (revision 5)",
                ),
                line(
                    "bowline undo cart -e production-eu --reason INC-43 --yes",
                    0,
                    "cart in production-eu: cart-v1.2.3 -> cart-",
                ),
                line(
                    "bowline mark bad cart-v1.2.3 --reason \"leaks connections\" --yes",
                    0,
                    "cart-v1.2.3 is marked bad",
                ),
                line("bowline gc --dry-run", 0, "release/cart-v1.2.3"),
                line("bowline history cart -e production-eu", 0, "Rollback"),
                line("bowline diff cart -e production-eu --live", 0, "after: "),
                line("bowline audit verify", 0, "valid"),
            ],
        ),
    ),
    entry("README.md", "[contexts.prod-eu]", NotRun(CONFIGURATION)),
    entry("docs/audit.md", "bowline audit list [", NotRun(SYNOPSIS)),
    entry(
        "docs/definitions.md",
        "bowline render -f DIR [",
        NotRun(SYNOPSIS),
    ),
    entry("docs/definitions.md", "schema:", NotRun(DEFINITION)),
    entry("docs/definitions.md", "patches:", NotRun(DEFINITION)),
    entry(
        "docs/definitions.md",
        "bowline release create COMPONENT",
        NotRun(SYNOPSIS),
    ),
    entry(
        "docs/diff.md",
        "bowline diff cart --from",
        Runs(
            Store,
            &[
                "bowline apply -f deploy/examples -R",
                "bowline release create cart --version v1",
                "bowline release create cart --version v2",
                "for v in 1 2 1 2 1 2 1; do bowline deploy cart -e staging --release cart-v$v --skip-path --reason x || exit 1; done",
                "bowline deploy cart -e production-eu --release cart-v1 --skip-path --reason x --yes",
            ],
            &[
                line(
                    "bowline diff cart --from staging --to production-eu",
                    0,
                    "after: cart in production-eu, release cart-v1",
                ),
                line("bowline diff cart -e staging", 0, "before: "),
                line(
                    "bowline diff cart -e staging --from-revision 3 --to-revision 7",
                    0,
                    "before: ",
                ),
                line("bowline diff cart -e staging --live", 0, "after: "),
                line("bowline diff --release cart-v1 cart-v2", 0, "before: "),
            ],
        ),
    ),
    entry(
        "docs/diff.md",
        "bowline revisions list",
        Runs(
            Store,
            &[],
            &[
                line("bowline revisions list cart/staging", 0, "REVISION"),
                line(
                    "bowline revisions diff cart/staging --from 3 --to 7",
                    0,
                    "before: ",
                ),
            ],
        ),
    ),
    entry(
        "docs/embedded.md",
        "$ bowline apply",
        Runs(
            Store,
            &[],
            &[
                line(
                    "bowline apply -f deploy/examples -R --embedded",
                    0,
                    "addon.openchoreo.dev/autoscaler created",
                ),
                line(
                    "bowline get components,environments --embedded",
                    0,
                    "production-eu",
                ),
                line(
                    "bowline get component cart -o yaml --embedded",
                    0,
                    "kind: Component",
                ),
                line(
                    "bowline delete component cart --embedded",
                    0,
                    "component.openchoreo.dev/cart deleted",
                ),
            ],
        ),
    ),
    entry("docs/embedded.md", "$ bowline serve", Served),
    entry("docs/embedded.md", "kubectl --kubeconfig=/dev/null", Served),
    entry(
        "docs/git-auth.md",
        "git config --global",
        Runs(
            Repository,
            &[],
            &[line(
                "git config --global credential.https://git.example.com.helper '!f() { echo username=ci; echo \"password=$DEPLOY_TOKEN\"; }; f'",
                0,
                "",
            )],
        ),
    ),
    entry(
        "docs/git-auth.md",
        "kubectl --namespace bowline-system create secret",
        Runs(
            Cluster,
            &[
                "kubectl create namespace bowline-system",
                "echo token > token-of-a-read-only-user",
            ],
            &[line(
                "kubectl --namespace bowline-system create secret generic bowline-git-tokens --from-file=git.example.com=token-of-a-read-only-user",
                0,
                "secret/bowline-git-tokens created",
            )],
        ),
    ),
    entry(
        "docs/gitops.md",
        "bowline status --repo .",
        Runs(
            Repository,
            &[
                "git config --global user.name Ana && git config --global user.email ana@example.com",
                "cp -r deploy/example-repository ~/deploy && cd ~/deploy",
                "git init -q -b main && git add -A && git commit -q -m begin",
                "git clone -q --bare . ~/origin.git && git remote add origin ~/origin.git",
                "git fetch -q origin && git branch -q -u origin/main",
            ],
            &[
                line("bowline status --repo .", 0, "checkout"),
                asks(
                    "bowline promote checkout --from staging --to production --reason \"faster checkout\" --repo . --push",
                    0,
                    "checkout in production: checkout-v1.4.0 -> checkout-v1.5.0",
                ),
            ],
        ),
    ),
    entry(
        "docs/gitops.md",
        "promote checkout-v1.5.0 to production",
        NotRun(TYPED),
    ),
    entry(
        "docs/gitops.md",
        "bowline promote checkout --from staging --to production --reason INC-42",
        Runs(
            Repository,
            &[
                "cd ~/deploy",
                "git reset -q --hard HEAD~1 && git push -q --force",
            ],
            &[
                asks(
                    "bowline promote checkout --from staging --to production --reason INC-42 --repo . --branch promote/checkout-v1.5.0 --push",
                    0,
                    "checkout in production: checkout-v1.4.0 -> checkout-v1.5.0",
                ),
                not_run(
                    "gh pr create --head promote/checkout-v1.5.0 --fill",
                    "it needs GitHub",
                ),
            ],
        ),
    ),
    entry(
        "docs/gitops.md",
        "bowline rollback checkout --environment production --reason INC-42",
        Runs(
            Repository,
            &[
                "cd ~/deploy",
                "git merge -q promote/checkout-v1.5.0 && git push -q",
            ],
            &[
                not_run(
                    "bowline rollback checkout --environment production --reason INC-42",
                    "it needs the cluster that a GitOps tool delivers to; tests/actions has one",
                ),
                asks(
                    "bowline rollback checkout --environment production --to checkout-v1.4.0 --reason INC-42 --no-hold --repo . --push",
                    0,
                    "checkout in production: checkout-v1.5.0 -> checkout-v1.4.0",
                ),
                not_run(
                    "bowline unpin checkout --environment production",
                    "it needs the cluster that a GitOps tool delivers to; tests/actions has one",
                ),
            ],
        ),
    ),
    entry(
        "docs/install.md",
        "bowline install --dry-run",
        Runs(
            Cluster,
            &[],
            &[
                line(
                    "bowline install --dry-run --image registry/bowline:0.1.0",
                    3,
                    "created (dry run)",
                ),
                line(
                    "bowline install --image registry/bowline:0.1.0",
                    0,
                    "deployment.apps/bowline-controller created",
                ),
                line(
                    "bowline install --print --image registry/bowline:0.1.0",
                    0,
                    "kind: CustomResourceDefinition",
                ),
                Line {
                    not_run: Some(
                        "it waits for kube-controller-manager, which this server does not have; tests/controllers runs it",
                    ),
                    ..line("bowline uninstall", 0, "")
                },
                Line {
                    not_run: Some("it needs a running controller; tests/controllers runs it"),
                    ..line("bowline uninstall --remove-running", 0, "")
                },
            ],
        ),
    ),
    entry(
        "docs/install.md",
        "docker build -t",
        NotRun("it needs a container engine and a registry; tests/cli runs deploy/check-image"),
    ),
    entry(
        "docs/install.md",
        "bowline controller --listen",
        NotRun(
            "it listens on every address of the machine until it is stopped; tests/controllers runs it",
        ),
    ),
    entry(
        "docs/install.md",
        "kubectl -n bowline-system create secret",
        Runs(
            Cluster,
            &[
                "kubectl create namespace bowline-system --dry-run=client -o yaml | kubectl apply -f -",
                "kubectl -n bowline-system delete secret bowline-git-tokens --ignore-not-found",
                "echo token > token.txt",
            ],
            &[line(
                "kubectl -n bowline-system create secret generic bowline-git-tokens --from-file=git.example.com=token.txt",
                0,
                "secret/bowline-git-tokens created",
            )],
        ),
    ),
    entry("docs/controllers.md", "apiVersion: ", NotRun(CONFIGURATION)),
    entry(
        "docs/controllers.md",
        "   kubectl --context eu",
        NotRun(SECOND_CLUSTER),
    ),
    entry("docs/controllers.md", "   token=", NotRun(SECOND_CLUSTER)),
    entry(
        "docs/controllers.md",
        "   kubectl -n bowline-system",
        NotRun(SECOND_CLUSTER),
    ),
    entry(
        "deploy/examples/README.md",
        "kubectl create priorityclass",
        NotRun(APPLIED_BY_CONTROLLERS),
    ),
    entry(
        "deploy/examples/README.md",
        "kubectl apply --server-side",
        NotRun(APPLIED_BY_CONTROLLERS),
    ),
    entry("docs/keymaps.md", "base = ", NotRun(CONFIGURATION)),
    entry("docs/keymaps.md", "list = [", NotRun(CONFIGURATION)),
    entry(
        "docs/keymaps.md",
        "keymap.toml:",
        Message(message_of_keymap),
    ),
    entry(
        "docs/security.md",
        "[contexts.prod-eu]",
        NotRun(CONFIGURATION),
    ),
    entry("docs/security.md", "- apiGroups:", NotRun(CONFIGURATION)),
    entry("docs/themes.md", "inherits = ", NotRun(CONFIGURATION)),
    entry("docs/themes.md", "mine.toml:", Message(message_of_theme)),
    entry(
        "docs/themes.md",
        "bowline theme import",
        Runs(
            Store,
            &[
                "mkdir -p ~/.config/k9s/skins",
                "echo 'k9s: {body: {fgColor: \"#d8dee9\", bgColor: \"#2e3440\"}}' > ~/.config/k9s/skins/nord.yaml",
            ],
            &[
                line(
                    "bowline theme import ~/.config/k9s/skins/nord.yaml",
                    0,
                    "inherits = ",
                ),
                line(
                    "bowline theme import ~/.config/k9s/skins/nord.yaml --name nord",
                    0,
                    "the theme nord is in ",
                ),
            ],
        ),
    ),
    entry(
        "deploy/examples/README.md",
        "development ──>",
        NotRun("a drawing, not a command"),
    ),
    entry(
        "deploy/examples/README.md",
        "bowline render -f deploy/examples",
        Runs(
            Store,
            &[],
            &[
                line(
                    "bowline render -f deploy/examples checkout-service --environment production-eu",
                    0,
                    "kind: Deployment",
                ),
                line(
                    "diff <(bowline render -f deploy/examples frontend --environment staging) <(bowline render -f deploy/examples frontend --environment production-us)",
                    1,
                    "namespace: shop-production-us",
                ),
            ],
        ),
    ),
    entry(
        "deploy/examples/README.md",
        "bowline apply -f deploy/examples -R --embedded=shop.db",
        Runs(
            Store,
            &[],
            &[
                line(
                    "bowline apply -f deploy/examples -R --embedded=shop.db",
                    0,
                    "component.openchoreo.dev/cart created",
                ),
                line(
                    "bowline get components,environments --embedded=shop.db",
                    0,
                    "production-us",
                ),
                line(
                    "bowline render checkout-service --environment production-eu --embedded=shop.db",
                    0,
                    "kind: Deployment",
                ),
            ],
        ),
    ),
    entry(
        "deploy/example-repository/README.md",
        "cp -r deploy/example-repository",
        Runs(
            Repository,
            &[
                "git config --global user.name Ana && git config --global user.email ana@example.com",
            ],
            &[
                line(
                    "cp -r deploy/example-repository ~/deploy && cd ~/deploy",
                    0,
                    "",
                ),
                line(
                    "git init -b main && git add -A && git commit -m begin",
                    0,
                    "begin",
                ),
                line("bowline status --repo .", 0, "checkout"),
                line(
                    "bowline promote checkout --from staging --to production --repo . --dry-run",
                    3,
                    "checkout in production: checkout-v1.4.0 -> checkout-v1.5.0",
                ),
                line("bowline check --repo .", 0, ""),
            ],
        ),
    ),
];
