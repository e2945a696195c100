use std::sync::{Arc, Mutex};

use futures::{FutureExt, StreamExt, TryStreamExt};
use http_body_util::{BodyExt, Full, StreamBody};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

type Answer = Response<http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>>;
type Seen = Arc<Mutex<Vec<String>>>;

/// Returns a backend that records each request and sends `answer` for it.
fn backend(
    seen: &Seen,
    answer: impl Fn() -> futures::future::BoxFuture<'static, Answer> + Clone + Send + 'static,
) -> impl Service<Request<Body>, Response = Answer, Error = BoxError, Future: Send + 'static>
+ Clone
+ Send
+ 'static {
    let seen = seen.clone();
    tower::service_fn(move |request: Request<Body>| {
        seen.lock()
            .unwrap()
            .push(format!("{} {}", request.method(), request.uri()));
        answer().map(Ok)
    })
}

fn says(code: u16, value: serde_json::Value) -> Answer {
    let body = Full::from(value.to_string()).map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
    response
}

fn flags(client: &kube::Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

fn map() -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": "flags"}})).unwrap()
}

/// Sends one request of each kind of write to `client`, and returns the errors.
async fn write_in_every_way(client: &kube::Client) -> Vec<kube::Error> {
    let api = flags(client);
    let (post, dry) = (
        PostParams::default(),
        PostParams {
            dry_run: true,
            ..Default::default()
        },
    );
    let patch = PatchParams::apply("tests").force();
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "flags"}});
    vec![
        api.create(&post, &map()).await.unwrap_err(),
        api.create(&dry, &map()).await.unwrap_err(),
        api.replace("flags", &post, &map()).await.unwrap_err(),
        api.replace("flags", &dry, &map()).await.unwrap_err(),
        api.patch("flags", &patch, &Patch::Apply(&body))
            .await
            .unwrap_err(),
        api.patch("flags", &patch.clone().dry_run(), &Patch::Apply(&body))
            .await
            .unwrap_err(),
        api.patch("flags", &PatchParams::default(), &Patch::Merge(&body))
            .await
            .unwrap_err(),
        api.delete("flags", &DeleteParams::default())
            .await
            .unwrap_err(),
        api.delete("flags", &DeleteParams::default().dry_run())
            .await
            .unwrap_err(),
        api.delete_collection(&DeleteParams::default(), &ListParams::default())
            .await
            .unwrap_err(),
    ]
}

#[tokio::test]
async fn read_only_lets_no_write_reach_the_backend() {
    let seen = Seen::default();
    let list = || async { says(200, json!({"metadata": {}, "items": []})) }.boxed();
    let readonly = Some("--readonly was given".to_owned());
    let client = guard(backend(&seen, list), "shop", readonly, Deadlines::default());
    for error in write_in_every_way(&client).await {
        assert_eq!(failure(&error), Failure::NotAllowed);
        let kube::Error::Api(status) = error else {
            panic!("not an answer: {error}");
        };
        assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
        assert!(status.message.contains("read-only"), "{}", status.message);
        assert!(
            status.message.contains("--readonly was given"),
            "{}",
            status.message
        );
    }
    assert_eq!(*seen.lock().unwrap(), [""; 0]);

    flags(&client).list(&ListParams::default()).await.unwrap();
    let review = serde_json::from_value(json!({"spec": {}})).unwrap();
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client);
    let _ = reviews.create(&PostParams::default(), &review).await;
    assert_eq!(
        *seen.lock().unwrap(),
        [
            "GET /api/v1/namespaces/shop/configmaps?",
            "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews?",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn writes_are_sent_once_and_reads_again_while_the_server_is_busy() {
    for code in [429, 503, 504] {
        let seen = Seen::default();
        let busy = move || async move { says(code, json!({"code": code})) }.boxed();
        let client = guard(backend(&seen, busy), "shop", None, Deadlines::default());
        let writes = write_in_every_way(&client).await.len();
        assert_eq!(seen.lock().unwrap().len(), writes, "{code}");
        seen.lock().unwrap().clear();
        flags(&client).get("flags").await.unwrap_err();
        assert_eq!(
            *seen.lock().unwrap(),
            ["GET /api/v1/namespaces/shop/configmaps/flags"; 4]
        );
    }
}

fn short() -> Deadlines {
    Deadlines {
        answer: Duration::from_secs(3),
        body: Duration::from_secs(7),
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_given_up() {
    let seen = Seen::default();
    let silent = || futures::future::pending().boxed();
    let client = guard(backend(&seen, silent), "shop", None, short());
    let start = tokio::time::Instant::now();
    let error = flags(&client)
        .create(&PostParams::default(), &map())
        .await
        .unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 3);
    assert_eq!(failure(&error), Failure::Unreachable);
    assert!(error.to_string().contains("no answer within 3s"), "{error}");
    assert_eq!(seen.lock().unwrap().len(), 1);

    // A watch has a deadline until the server sends the head of its answer.
    let watch = flags(&client).watch(&WatchParams::default(), "0").await;
    assert!(watch.is_err());
    assert_eq!(start.elapsed().as_secs(), 6);
}

/// Returns an answer whose body sends one piece after `delay` and then never ends.
fn drip(delay: Duration) -> Answer {
    let event = json!({"type": "ADDED", "object": {"metadata": {"name": "late"}}});
    let piece = async move {
        tokio::time::sleep(delay).await;
        Ok(http_body::Frame::data(Bytes::from(format!("{event}\n"))))
    };
    let stream = futures::stream::once(piece).chain(futures::stream::pending());
    Response::new(StreamBody::new(stream).boxed_unsync())
}

#[tokio::test(start_paused = true)]
async fn a_body_has_a_deadline_and_a_watch_has_none() {
    let hour = Duration::from_secs(3600);
    let dripping = move || async move { drip(hour) }.boxed();
    let client = guard(backend(&Seen::default(), dripping), "shop", None, short());
    let start = tokio::time::Instant::now();
    let error = flags(&client).get("flags").await.unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 7);
    assert_eq!(failure(&error), Failure::Unreachable);
    assert!(
        format!("{error:?}").contains("end of the answer"),
        "{error:?}"
    );

    let watch = flags(&client)
        .watch(&WatchParams::default(), "0")
        .await
        .unwrap();
    let event = std::pin::pin!(watch).try_next().await.unwrap();
    assert!(
        matches!(event, Some(kube::core::WatchEvent::Added(_))),
        "{event:?}"
    );
    assert!(start.elapsed() >= hour);
}

const ONE: &str = r#"
apiVersion: v1
kind: Config
current-context: one
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: one, context: {cluster: c, user: u, namespace: shop}}, {name: two, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
"#;

#[test]
fn the_target_is_what_flags_and_environment_say() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let one = file("one", ONE);
    let two = file("two", "{kind: Config, current-context: two}");
    let none_current = file("none", &ONE.replace("current-context: one", ""));
    let empty = file("empty", "");
    let broken = file("broken", "contexts: [");
    let missing = home.path().join("missing");
    let data = home.path().join("data");

    let bare = Environment {
        home: Some(home.path().to_owned()),
        data_dir: Some(data.clone()),
        ..Environment::default()
    };
    let with = |files: &[&Path]| Environment {
        kubeconfig: Some(std::env::join_paths(files).unwrap()),
        ..bare.clone()
    };
    let pod = Environment {
        in_pod: true,
        ..bare.clone()
    };
    let flags = Options::default();
    let context = |name: &str| Options {
        context: Some(name.to_owned()),
        ..Options::default()
    };
    let kubeconfig = |path: &Path| Options {
        kubeconfig: Some(path.to_owned()),
        ..Options::default()
    };
    let store = |store| Options {
        embedded: Some(store),
        ..Options::default()
    };
    let default_store = format!("embedded store {}", data.join("bowline.db").display());

    let chosen = |options: &Options, environment: &Environment| {
        choose(options, environment)
            .map_or_else(|error| error.to_string(), |target| target.to_string())
    };
    for (options, environment, expected) in [
        (&flags, &bare, default_store.as_str()),
        (&flags, &pod, "the cluster of this pod"),
        (&flags, &with(&[&one]), "context one"),
        (&flags, &with(&[&two, &one]), "context two"),
        (&flags, &with(&[&missing, &one]), "context one"),
        (&flags, &with(&[&missing]), default_store.as_str()),
        (&flags, &with(&[&empty]), default_store.as_str()),
        (
            &flags,
            &with(&[&none_current]),
            "the kubeconfig has no current context",
        ),
        (&context("two"), &with(&[&one]), "context two"),
        (
            &context("three"),
            &with(&[&one]),
            "the kubeconfig has no context three",
        ),
        (&context("one"), &bare, "the kubeconfig has no context one"),
        (&kubeconfig(&one), &pod, "context one"),
        (
            &kubeconfig(&empty),
            &bare,
            "the kubeconfig has no current context",
        ),
        (
            &store(StoreFile::Default),
            &with(&[&one]),
            default_store.as_str(),
        ),
        (
            &store(StoreFile::At("x.db".into())),
            &pod,
            "embedded store x.db",
        ),
    ] {
        assert_eq!(chosen(options, environment), expected, "{options:?}");
    }
    for options in [kubeconfig(&missing), kubeconfig(&broken)] {
        let error = choose(&options, &bare).unwrap_err();
        assert!(matches!(error, Error::Kubeconfig { .. }), "{error}");
        assert_eq!(error.failure(), Failure::Usage);
    }
    file(".kube/config", ONE);
    assert_eq!(chosen(&flags, &bare), "context one");
}

/// Starts a server that records each request and answers 503.
async fn busy_server() -> (std::net::SocketAddr, Seen) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Seen::default();
    let told = seen.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 65536];
            let length = stream.read(&mut request).await.unwrap_or(0);
            let head = String::from_utf8_lossy(&request[..length]).into_owned();
            told.lock().unwrap().push(head);
            let answer = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (address, seen)
}

#[tokio::test]
async fn a_cluster_gets_a_write_once_and_who_it_is_from() {
    let (address, seen) = busy_server().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config");
    std::fs::write(&file, ONE.replace("127.0.0.1:1", &address.to_string())).unwrap();
    let options = Options {
        kubeconfig: Some(file),
        impersonate: Some("ana".to_owned()),
        ..Options::default()
    };
    let connection = connect(&options, &Environment::default()).await.unwrap();
    assert_eq!(connection.namespace, "shop");
    assert_eq!(connection.readonly, None);
    let error = flags(&connection.client)
        .create(&PostParams::default(), &map())
        .await
        .unwrap_err();
    assert_eq!(failure(&error), Failure::Unreachable);
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(
        seen[0].starts_with("POST /api/v1/namespaces/shop/configmaps?"),
        "{seen:?}"
    );
    assert!(
        seen[0].to_lowercase().contains("impersonate-user: ana"),
        "{seen:?}"
    );
}

#[tokio::test]
async fn nobody_listening_is_unreachable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config");
    std::fs::write(&file, ONE.replace("127.0.0.1:1", &address.to_string())).unwrap();
    let options = Options {
        kubeconfig: Some(file),
        ..Options::default()
    };
    let connection = connect(&options, &Environment::default()).await.unwrap();
    let error = connection.client.apiserver_version().await.unwrap_err();
    assert_eq!(failure(&error), Failure::Unreachable, "{error:?}");
}

#[tokio::test]
async fn the_data_directory_is_made_and_is_private() {
    let home = tempfile::tempdir().unwrap();
    let environment = Environment {
        data_dir: Some(home.path().join("share/bowline")),
        user: "ana".to_owned(),
        ..Environment::default()
    };
    let connection = connect(&Options::default(), &environment).await.unwrap();
    assert_eq!(connection.namespace, "default");
    let file = home.path().join("share/bowline/bowline.db");
    assert_eq!(
        connection.target.to_string(),
        format!("embedded store {}", file.display())
    );
    assert!(file.exists());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(file.parent().unwrap())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
}

/// Returns the discovery answer for a path.
type Group = fn(&str) -> Answer;

fn listing(kinds: &[ApiResource]) -> Answer {
    let resources = kinds.iter();
    let resources = resources.map(|kind| json!({"name": kind.plural, "kind": kind.kind, "namespaced": true, "singularName": "", "verbs": ["list"]}));
    let resources: Vec<_> = resources.collect();
    says(
        200,
        json!({"kind": "APIResourceList", "groupVersion": "", "resources": resources}),
    )
}

fn no_group() -> Answer {
    let body = Full::from("404 page not found\n").map_err(|never| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = http::StatusCode::NOT_FOUND;
    response
}

#[tokio::test]
async fn kinds_that_discovery_does_not_list_are_named_with_the_two_next_steps() {
    use crate::api::{AuditEntry, Release, ReleasePin};
    let all: Group = |path| match path {
        "/apis/openchoreo.dev/v1alpha1" => {
            listing(&[kinds::kind::<ReleasePin>(), kinds::kind::<Release>()])
        }
        _ => listing(&[kinds::kind::<AuditEntry>()]),
    };
    let some: Group = |path| match path {
        "/apis/openchoreo.dev/v1alpha1" => {
            listing(&[kinds::kind::<ReleasePin>(), kinds::kind::<Release>()])
        }
        _ => no_group(),
    };
    let denied: Group = |_| {
        says(
            403,
            json!({"kind": "Status", "code": 403, "message": "no", "reason": "Forbidden", "status": "Failure"}),
        )
    };
    let wanted = [
        kinds::kind::<ReleasePin>(),
        kinds::kind::<Release>(),
        kinds::kind::<AuditEntry>(),
    ];
    for (answers, missing) in [
        (all, None),
        (some, Some("AuditEntry (bowline.dev/v1alpha1)")),
        (
            (|_| no_group()) as Group,
            Some(
                "ReleasePin, Release (openchoreo.dev/v1alpha1), AuditEntry (bowline.dev/v1alpha1)",
            ),
        ),
        // The server may have the kinds, because it only denies this user the discovery documents.
        (denied, None),
    ] {
        let backend = tower::service_fn(move |request: Request<Body>| async move {
            Ok::<_, BoxError>(answers(request.uri().path()))
        });
        let client = guard(backend, "shop", None, Deadlines::default());
        let target = Target::Context {
            name: "one".to_owned(),
            kubeconfig: Box::default(),
        };
        let connection = Connection::of(client.clone(), target, "shop");
        let required = connection.require(&wanted).await;
        let Some(missing) = missing else {
            required.unwrap();
            continue;
        };
        let error = required.unwrap_err();
        assert_eq!(error.failure(), Failure::NotInstalled);
        assert_eq!(
            error.to_string(),
            format!(
                "context one does not have the kinds {missing}: bowline is not installed there, or only in part; nothing is wrong with the cluster"
            )
        );
        let hints = error.hints();
        assert!(hints[0].ends_with("bowline install --context one"));
        assert!(hints[1].ends_with("bowline status -A --context one"));
        // An embedded store gets no discovery request, because it has all kinds.
        let file = "store.db".into();
        let own = Connection::of(client, Target::Embedded { file }, "shop");
        own.require(&wanted).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_discovery_is_waited_for_once() {
    let seen = Seen::default();
    let never = || futures::future::pending().boxed();
    let client = guard(backend(&seen, never), "shop", None, Deadlines::default());
    let connection = Connection::of(client, Target::Pod, "shop");
    let wanted = [kinds::kind::<crate::api::ReleasePin>()];
    let error = connection.require(&wanted).await.unwrap_err();
    assert_eq!(error.failure(), Failure::Unreachable, "{error}");
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_data_plane_without_its_kubeconfig_names_the_secret() {
    let directory = tempfile::tempdir().unwrap();
    let client = guard(
        backend(&Seen::default(), || async { no_group() }.boxed()),
        "shop",
        None,
        Deadlines::default(),
    );
    let connection = Connection::of(client, Target::Pod, "shop");
    let file = directory.path().join("config");
    let (options, environment) = (Options::default(), Environment::default());
    let planes = DataPlanes::in_file(&connection, &file, &options, &environment);
    let second = crate::api::openchoreo::environment::Reach::Context("one");
    let error = planes.client(second).await.err().unwrap();
    assert!(error.to_string().contains("context one"), "{error}");
    let hints = error.hints();
    assert!(hints[0].contains("Secret bowline-kubeconfig"), "{hints:?}");
    // The file exists now, as after the creation of its Secret, so the client can be created.
    std::fs::write(&file, ONE).unwrap();
    assert!(planes.client(second).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_beside_a_repository_is_asked_for_its_kinds_before_a_watch() {
    use super::repository::{Trouble, locked, mirror};
    use crate::gitops::tree::{self, Layout, TreeOptions};

    let place = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("git")
        .args(["init", "-q"])
        .arg(place.path())
        .status();
    assert!(made.unwrap().success());
    let options = TreeOptions {
        directory: place.path().to_owned(),
        cache: None,
        namespace: Some("shop".to_owned()),
        beside: None,
        user: None,
        account: "ana".to_owned(),
        variables: std::env::vars_os().collect(),
        layout: Layout::default(),
    };
    let (served, tree) = tree::open(options).await.unwrap();
    let installed = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (asked, mut requests) = tokio::sync::mpsc::unbounded_channel::<String>();
    let has = installed.clone();
    let backend = tower::service_fn(move |request: Request<Body>| {
        let path = request.uri().path().to_owned();
        let has = has.load(std::sync::atomic::Ordering::SeqCst);
        let answer = match path.as_str() {
            _ if !has => no_group(),
            "/apis/openchoreo.dev/v1alpha1" => listing(&[kinds::kind::<crate::api::ReleasePin>()]),
            _ => says(
                200,
                json!({"kind": "ReleasePinList", "apiVersion": "openchoreo.dev/v1alpha1", "metadata": {"resourceVersion": "1"}, "items": []}),
            ),
        };
        let _ = asked.send(path);
        async move { Ok::<_, BoxError>(answer) }
    });
    let client = guard(backend, "shop", None, Deadlines::default());
    let trouble = Trouble::default();
    let mirroring = tokio::spawn(mirror(
        client,
        "one".to_owned(),
        served,
        tree,
        trouble.clone(),
    ));
    // While the cluster does not have the kind, bowline sends only discovery requests.
    for _ in 0..2 {
        let path = requests.recv().await.unwrap();
        assert_eq!(path, "/apis/openchoreo.dev/v1alpha1");
    }
    let said = locked(&trouble).clone();
    let words = "context one does not have the kinds ReleasePin (openchoreo.dev/v1alpha1): bowline is not installed there";
    assert_eq!(said.as_deref(), Some(words));
    // The watch begins after the kind is installed.
    installed.store(true, std::sync::atomic::Ordering::SeqCst);
    while requests.recv().await.unwrap() == "/apis/openchoreo.dev/v1alpha1" {}
    mirroring.abort();
}
