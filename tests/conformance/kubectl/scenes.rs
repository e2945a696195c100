//! The table of kubectl commands.

use super::{
    Row, Scene,
    normal::{
        without_absent_groups, without_build, without_complaints, without_descriptions,
        without_object, without_selector, without_uid,
    },
    run, watch,
};

const NO_SENTENCES: &str = "the built-in table has types and no descriptions";
const FEWER_GROUPS: &str = "only groups that a data plane needs are served";
const OTHER_BUILD: &str = "bowline is not built as kube-apiserver is";

/// Returns all scenes.
pub fn all() -> Vec<Scene> {
    let scene = |name, rows| Scene { name, rows };
    vec![
        scene("discovery", discovery()),
        scene("explained", explained()),
        scene("configmaps", configmaps()),
        scene("selected", selected()),
        scene("applied", applied()),
        scene("owned", owned()),
        scene("deployments", deployments()),
        scene("releases", releases()),
        scene("pins", pins()),
        scene("definitions", definitions()),
        scene("watched", watched()),
        scene("deleted", deleted()),
        scene("events", events()),
        scene("identity", identity()),
    ]
}

fn discovery() -> Vec<Row> {
    vec![
        run("kubectl version").apart(OTHER_BUILD, without_build),
        run("kubectl version -o yaml").apart(OTHER_BUILD, without_build),
        run("kubectl api-resources").apart(FEWER_GROUPS, without_absent_groups),
        run("kubectl api-resources -o wide --sort-by=name")
            .apart(FEWER_GROUPS, without_absent_groups),
        run("kubectl api-resources --namespaced=false --verbs=list -o name")
            .apart(FEWER_GROUPS, without_absent_groups),
        run("kubectl api-resources --api-group=openchoreo.dev -o wide"),
        run("kubectl api-resources --api-group=apps -o wide"),
        run("kubectl api-resources --api-group=apiextensions.k8s.io"),
        run("kubectl api-resources --categories=bowline"),
        run("kubectl api-versions").apart(FEWER_GROUPS, without_absent_groups),
        run(
            "kubectl get --raw /apis/openchoreo.dev/v1alpha1 | tr -d '{}[]' | tr , '\\n' | sed s/^.resources.:// | grep -v storageVersionHash | sort",
        ),
        run("kubectl get --raw /apis/nothing.example"),
        run("kubectl get --raw /readyz"),
        run("kubectl get boats"),
        run("kubectl cluster-info | head -1"),
    ]
}

fn explained() -> Vec<Row> {
    vec![
        run("kubectl explain releasepins"),
        run("kubectl explain pin.spec"),
        run("kubectl explain pin.spec.holds"),
        run("kubectl explain pin --recursive"),
        run("kubectl explain releases.openchoreo.dev"),
        run("kubectl explain releases.openchoreo.dev.spec.component"),
        run("kubectl explain pin.spec.nothing"),
        run("kubectl explain nothing"),
        run("kubectl explain configmaps").apart(NO_SENTENCES, without_descriptions),
        run("kubectl explain deployment.spec").apart(NO_SENTENCES, without_descriptions),
        run("kubectl explain deployment.spec.template.spec.containers.ports")
            .apart(NO_SENTENCES, without_descriptions),
        run("kubectl explain deployment --recursive").apart(NO_SENTENCES, without_descriptions),
        run("kubectl explain crd.spec.versions.schema --recursive")
            .apart(NO_SENTENCES, without_descriptions),
        run("kubectl explain hpa --api-version=autoscaling/v1 --recursive")
            .apart(NO_SENTENCES, without_descriptions),
        run("kubectl explain deployment.spec.nothing").apart(NO_SENTENCES, without_descriptions),
    ]
}

fn configmaps() -> Vec<Row> {
    vec![
        run("kubectl create -f configmap.yaml"),
        run("kubectl create -f configmap.yaml"),
        run("kubectl get configmap settings"),
        run("kubectl get cm/settings -o wide --show-labels"),
        run("kubectl get cm settings -o yaml"),
        run("kubectl get cm settings -o yaml --show-managed-fields"),
        run("kubectl get cm settings -o json"),
        run("kubectl get cm settings -o name"),
        run("kubectl get cm settings -o jsonpath='{.data.colour} {.metadata.labels}'"),
        run("kubectl get cm settings -o go-template='{{.data.size}}'"),
        run(
            "kubectl get cm settings -o custom-columns=NAME:.metadata.name,COLOUR:.data.colour,NONE:.data.none",
        ),
        run("kubectl get cm settings -L app,tier"),
        run("kubectl get cm nothing"),
        run("kubectl get cm nothing --ignore-not-found"),
        run("kubectl get cm settings nothing"),
        run("kubectl describe cm settings"),
        run("kubectl create configmap from-flags --from-literal=a=1 --from-literal=b=2 -o yaml"),
        run("kubectl create configmap from-flags --from-literal=a=1"),
        run("kubectl create configmap 'Not_A_Name' --from-literal=a=1"),
        run("kubectl create configmap dry --from-literal=a=1 --dry-run=client -o yaml"),
        run("kubectl create configmap dry --from-literal=a=1 --dry-run=server -o yaml"),
        run("kubectl get cm dry"),
        run("kubectl create secret generic keys --from-literal=token=s3cret"),
        run("kubectl get secret keys"),
        run("kubectl get secret keys -o yaml"),
        run("kubectl create namespace configmaps"),
        run("kubectl label cm settings tier=db"),
        run("kubectl label cm settings tier=db --overwrite"),
        run("kubectl label cm settings tier-"),
        run("kubectl label cm settings 'bad key=x'"),
        run("kubectl annotate cm settings note='a word' --overwrite"),
        run("kubectl annotate cm settings --list"),
        run(
            "kubectl patch cm settings --type=merge -p '{\"data\":{\"size\":null,\"shape\":\"round\"}}' -o jsonpath='{.data}'",
        ),
        run(
            "kubectl patch cm settings --type=json -p '[{\"op\":\"replace\",\"path\":\"/data/colour\",\"value\":\"red\"}]'",
        ),
        run(
            "kubectl patch cm settings --type=json -p '[{\"op\":\"test\",\"path\":\"/data/colour\",\"value\":\"blue\"}]'",
        ),
        run(
            "kubectl patch cm settings --type=json -p '[{\"op\":\"remove\",\"path\":\"/data/nothing\"}]'",
        ),
        run(
            "kubectl patch cm settings --type=strategic -p '{\"metadata\":{\"labels\":{\"app\":null}}}'",
        ),
        run("kubectl patch cm settings --type=merge -p '{}'"),
        run("kubectl patch cm nothing --type=merge -p '{\"data\":{}}'"),
        run("kubectl patch cm settings --type=merge -p 'no json'"),
        run("kubectl patch cm settings --type=merge -p '{\"data\":{\"n\":3}}'").apart(
            "the object in the message has its fields in another order",
            without_object,
        ),
        run("kubectl get cm settings -o yaml > $WORK/stale.yaml"),
        run("kubectl patch cm settings --type=merge -p '{\"data\":{\"shape\":\"square\"}}'"),
        run("kubectl replace -f $WORK/stale.yaml"),
        run("kubectl replace -f configmap.yaml"),
        run("kubectl replace --force -f configmap.yaml"),
        run("kubectl replace -f pin.yaml"),
        run("EDITOR='sed -i s/blue/teal/' kubectl edit cm settings"),
        run("EDITOR=true kubectl edit cm settings"),
        run("kubectl get cm settings -o jsonpath='{.data}{\"\\n\"}'"),
        run("kubectl delete cm settings from-flags"),
        run("kubectl delete cm settings"),
        run("kubectl delete cm settings --ignore-not-found"),
        run("kubectl get all"),
        run("kubectl get cm"),
    ]
}

fn selected() -> Vec<Row> {
    vec![
        run("kubectl apply -f configmaps.yaml"),
        run("kubectl get cm -l app=shop"),
        run("kubectl get cm -l 'app in (shop,bank),tier!=db' -o name"),
        run("kubectl get cm -l '!tier' -o name"),
        run("kubectl get cm -l 'tier,app notin (bank)' -o name"),
        run("kubectl get cm -l 'app=='"),
        run("kubectl get cm -l 'app in shop'"),
        run("kubectl get cm --field-selector metadata.name=beta"),
        run(
            "kubectl get cm --field-selector metadata.name!=beta,metadata.namespace=selected -o name",
        ),
        run("kubectl get cm --field-selector data.order=1"),
        run("kubectl get cm --sort-by=.data.order"),
        run("kubectl get cm --sort-by=.data.order -o name"),
        run("kubectl get cm --chunk-size=1"),
        run("kubectl get cm --chunk-size=2 -o yaml"),
        run("kubectl get cm --no-headers"),
        run("kubectl get cm -o wide --show-kind"),
        run("kubectl get cm -A --field-selector metadata.namespace=selected"),
        run("kubectl get -f configmaps.yaml -o jsonpath='{.items[*].metadata.name}'"),
        run("kubectl get cm,secret"),
        run("kubectl label cm -l app=shop seen=yes"),
        run("kubectl delete cm -l app=shop"),
        run("kubectl delete cm --field-selector metadata.name=gamma"),
        run("kubectl get cm -o name"),
        run("kubectl apply -f pins.yaml"),
        run("kubectl get pin"),
        run("kubectl get pin --field-selector spec.component=pay"),
        run("kubectl get pin --field-selector spec.environment!=production -o name"),
        run(
            "kubectl get pin --field-selector spec.releaseRef.name=pay-v2,metadata.name=pay-staging -o name",
        ),
        run("kubectl get pin --field-selector spec.holds=x"),
        run("kubectl get pin -l openchoreo.dev/component=cart -o name"),
        run("kubectl get pin --sort-by=.spec.releaseRef.name -o wide"),
        run("kubectl get pin --chunk-size=1 -o name"),
        run("kubectl delete pin --all"),
    ]
}

fn applied() -> Vec<Row> {
    vec![
        run("kubectl apply -f configmap.yaml --dry-run=client"),
        run("kubectl apply -f configmap.yaml --dry-run=server"),
        run("kubectl diff -f configmap.yaml"),
        run("kubectl apply -f configmap.yaml"),
        run("kubectl apply -f configmap.yaml"),
        run("kubectl diff -f configmap.yaml"),
        run("kubectl diff -f configmap-smaller.yaml"),
        run("kubectl diff --server-side -f configmap-smaller.yaml"),
        run("kubectl apply -f configmap-smaller.yaml --dry-run=server -o yaml"),
        run("kubectl apply -f configmap-smaller.yaml --dry-run=client -o name"),
        run("kubectl apply -f configmap-smaller.yaml"),
        run("kubectl get cm settings -o yaml"),
        run("kubectl apply view-last-applied cm settings"),
        run("kubectl apply -f deployment.yaml"),
        run("kubectl apply -f deployment-smaller.yaml"),
        run("kubectl get deployment web -o yaml"),
        run("kubectl diff -f deployment.yaml"),
        run("kubectl apply -f pin.yaml"),
        run("kubectl apply -f pin-moved.yaml"),
        run("kubectl get pin cart-staging -o yaml"),
        run("kubectl apply -f pin-invalid.yaml"),
        run(
            "kubectl apply -f configmap.yaml -f pin.yaml --prune -l app=shop --prune-allowlist=core/v1/ConfigMap",
        ),
        run(
            "printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: strange}\\ndata: {a: b}\\ncolour: blue\\n' | kubectl apply -f -",
        ),
        run(
            "printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: strange}\\ndata: {a: b}\\ncolour: blue\\n' | kubectl apply --validate=warn -f -",
        ),
        run(
            "printf 'apiVersion: nothing.example/v1\\nkind: Nothing\\nmetadata: {name: strange}\\n' | kubectl apply -f -",
        ),
        run("printf 'apiVersion: v1\\nkind: ConfigMap\\ndata: {a: b}\\n' | kubectl apply -f -"),
        run("kubectl apply -f deployment.yaml --server-side"),
    ]
}

fn owned() -> Vec<Row> {
    vec![
        run("kubectl apply --server-side -f configmap.yaml"),
        run("kubectl apply --server-side -f configmap.yaml"),
        run("kubectl get cm settings -o yaml --show-managed-fields"),
        run("kubectl apply --server-side --field-manager=other -f configmap-smaller.yaml"),
        run(
            "kubectl apply --server-side --field-manager=other --dry-run=server --force-conflicts -f configmap-smaller.yaml -o yaml --show-managed-fields",
        ),
        run(
            "kubectl apply --server-side --field-manager=other --force-conflicts -f configmap-smaller.yaml",
        ),
        run("kubectl get cm settings -o yaml --show-managed-fields"),
        run("kubectl apply --server-side -f configmap-smaller.yaml"),
        run("kubectl get cm settings -o yaml --show-managed-fields"),
        run("kubectl apply --server-side -f deployment.yaml"),
        run("kubectl apply --server-side -f deployment-smaller.yaml"),
        run("kubectl get deployment web -o yaml --show-managed-fields"),
        run("kubectl scale deployment web --replicas=5"),
        run("kubectl apply --server-side -f deployment.yaml"),
        run("kubectl apply --server-side -f release.yaml"),
        run("kubectl apply --server-side -f pin.yaml"),
        run("kubectl apply --server-side --field-manager=other -f pin-moved.yaml"),
        run("kubectl apply --server-side -f pin-moved.yaml"),
        run("kubectl get pin cart-staging -o yaml --show-managed-fields"),
        run(
            "kubectl apply --server-side --subresource=status --field-manager=controller -f - <<E\n{apiVersion: openchoreo.dev/v1alpha1, kind: ReleasePin, metadata: {name: cart-staging}, status: {appliedRelease: cart-v2}}\nE",
        ),
        run("kubectl get pin cart-staging -o jsonpath='{.status}{\"\\n\"}'"),
        run("kubectl apply --server-side -f pin-invalid.yaml"),
    ]
}

fn deployments() -> Vec<Row> {
    vec![
        run("kubectl create -f deployment.yaml"),
        run("kubectl get deployment"),
        run("kubectl get deploy web -o wide"),
        run("kubectl get deploy web -o yaml"),
        run("kubectl get deploy web -o name"),
        run("kubectl describe deploy web"),
        run("kubectl patch deploy web --subresource=status --patch-file deployment-status.yaml"),
        run("kubectl get deploy web -o wide"),
        run("kubectl rollout status deploy web"),
        run("kubectl wait --for=condition=Available deploy web --timeout=10s"),
        run("kubectl set image deploy/web main=registry.example/shop/web:v2"),
        run("kubectl set image deploy/web nobody=registry.example/shop/web:v2"),
        run("kubectl set env deploy/web COLOUR=red SIZE-"),
        run("kubectl set resources deploy/web -c main --limits=cpu=200m,memory=64Mi"),
        run("kubectl get deploy web -o jsonpath='{.spec.template.spec.containers}{\"\\n\"}'"),
        run(
            "kubectl patch deploy web -p '{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"proxy\",\"image\":\"registry.example/shop/proxy:v9\"}]}}}}'",
        ),
        run(
            "kubectl patch deploy web -p '{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"proxy\",\"$patch\":\"delete\"}]}}}}'",
        ),
        run(
            "kubectl patch deploy web -p '{\"spec\":{\"template\":{\"spec\":{\"$setElementOrder/containers\":[{\"name\":\"side\"},{\"name\":\"main\"}],\"containers\":[{\"name\":\"side\",\"image\":\"a\"}]}}}}'",
        ),
        run(
            "kubectl patch deploy web --type=json -p '[{\"op\":\"add\",\"path\":\"/spec/template/metadata/labels/x\",\"value\":\"y\"}]'",
        ),
        run("kubectl patch deploy web --type=merge -p '{\"spec\":{\"replicas\":-1}}'"),
        run(
            "kubectl patch deploy web --type=merge -p '{\"spec\":{\"selector\":{\"matchLabels\":{\"app\":\"x\"}}}}'",
        ),
        run("kubectl scale deploy web --replicas=4"),
        run("kubectl scale deploy web --current-replicas=1 --replicas=4"),
        run("kubectl get deploy web --subresource=scale -o yaml"),
        run("kubectl get deploy web --subresource=status"),
        run("kubectl autoscale deploy web --min=1 --max=3 --cpu=80%"),
        run("kubectl get hpa"),
        run("kubectl expose deploy web --port=80 --target-port=8080 --cluster-ip=None"),
        run("kubectl get svc -o wide"),
        run("kubectl rollout pause deploy web"),
        run("kubectl rollout resume deploy web"),
        run("kubectl rollout history deploy web"),
        run("kubectl get deploy web -o yaml --show-managed-fields"),
        run("kubectl create deployment quick --image=registry.example/quick:v1 --replicas=2"),
        run(
            "kubectl create deployment quick2 --image=registry.example/quick:v1 --dry-run=server -o yaml",
        ),
        run("kubectl create job once --image=registry.example/once:v1 -- run"),
        run("kubectl get job once -o wide").apart(
            "the selector of a job is made by the server's Go code",
            without_selector,
        ),
        run(
            "kubectl create cronjob often --image=registry.example/once:v1 --schedule='*/5 * * * *'",
        ),
        run("kubectl get cronjob -o wide"),
        run("kubectl create pdb few --selector=app=web --min-available=1"),
        run("kubectl get pdb"),
        run("kubectl create serviceaccount walker"),
        run("kubectl get sa walker"),
        run("kubectl create role reader --verb=get --resource=pods"),
        run(
            "kubectl create rolebinding reader --role=reader --user=ana --group=crew --serviceaccount=deployments:walker",
        ),
        run("kubectl get role,rolebinding -o wide"),
        run("kubectl create ingress front --rule='shop.example/*=web:80' --class=nginx"),
        run("kubectl get ingress -o wide"),
        run("kubectl create quota most --hard=pods=5,limits.cpu=2"),
        run("kubectl run lone --image=registry.example/lone:v1 --restart=Never"),
        run("kubectl get pods -o wide"),
        run("kubectl delete deploy web quick"),
    ]
}

fn releases() -> Vec<Row> {
    vec![
        run("kubectl create -f release.yaml"),
        run("kubectl create -f release.yaml"),
        run("kubectl get releases.openchoreo.dev"),
        run("kubectl get releases.openchoreo.dev -o wide"),
        run("kubectl get releases.openchoreo.dev cart-v1 -o yaml"),
        run("kubectl get releases.openchoreo.dev -o name"),
        run("kubectl describe releases.openchoreo.dev cart-v1"),
        run(
            "kubectl patch releases.openchoreo.dev cart-v1 --type=merge -p '{\"spec\":{\"workload\":{\"spec\":{\"image\":\"x\"}}}}'",
        ),
        run(
            "kubectl patch releases.openchoreo.dev cart-v1 --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec\"}]'",
        ),
        run(
            "kubectl patch releases.openchoreo.dev cart-v1 --type=strategic -p '{\"metadata\":{\"labels\":{\"a\":\"b\"}}}'",
        ),
        run("sed s/cart:v1/cart:v9/ release.yaml | kubectl apply -f -"),
        run(
            "sed s/cart:v1/cart:v9/ release.yaml | kubectl apply --server-side --force-conflicts -f -",
        ),
        run("sed s/cart:v1/cart:v9/ release.yaml | kubectl replace -f -"),
        run("kubectl label releases.openchoreo.dev cart-v1 bowline.dev/pinned=true"),
        run("kubectl delete releases.openchoreo.dev cart-v1"),
        run("kubectl label releases.openchoreo.dev cart-v1 bowline.dev/pinned-"),
        run("kubectl annotate releases.openchoreo.dev cart-v1 bowline.dev/size=12"),
        run("kubectl apply -f release-2.yaml"),
        run(
            "kubectl get releases.openchoreo.dev -l openchoreo.dev/component=cart --sort-by=.metadata.name -o wide",
        ),
        run(
            "kubectl get releases.openchoreo.dev cart-v1 -o custom-columns='IMAGE:.spec.workload.spec.image,HASH:.metadata.annotations.bowline\\.dev/content-hash'",
        ),
        run("kubectl delete -f release.yaml -f release-2.yaml"),
    ]
}

fn pins() -> Vec<Row> {
    vec![
        run("kubectl create -f pin-invalid.yaml"),
        run("kubectl create -f pin.yaml --dry-run=server"),
        run("kubectl create -f pin.yaml"),
        run("kubectl get pin"),
        run("kubectl get pin -o wide"),
        run("kubectl get pin cart-staging -o yaml"),
        run("kubectl get pin cart-staging -o yaml --show-managed-fields"),
        run("kubectl describe pin cart-staging"),
        run(
            "kubectl patch pin cart-staging --type=merge -p '{\"spec\":{\"releaseRef\":{\"name\":\"cart-v2\"}}}'",
        ),
        run(
            "kubectl patch pin cart-staging --type=merge -p '{\"spec\":{\"environment\":\"production\"}}'",
        ),
        run(
            "kubectl patch pin cart-staging --type=json -p '[{\"op\":\"add\",\"path\":\"/spec/holds/-\",\"value\":{\"id\":\"two\",\"owner\":\"bob\",\"since\":\"2026-01-05T13:40:00Z\"}}]'",
        ),
        run(
            "kubectl patch pin cart-staging --type=json -p '[{\"op\":\"add\",\"path\":\"/spec/holds/-\",\"value\":{\"id\":\"two\",\"owner\":\"bob\",\"since\":\"2026-01-05T13:40:00Z\"}}]'",
        ),
        run(
            "kubectl patch pin cart-staging --type=strategic -p '{\"spec\":{\"releaseRef\":{\"name\":\"cart-v3\"}}}'",
        ),
        run("kubectl patch pin cart-staging --type=merge -p '{\"spec\":{\"colour\":\"blue\"}}'"),
        run(
            "kubectl patch pin cart-staging --type=merge -p '{\"status\":{\"appliedRelease\":\"x\"}}'",
        ),
        run("kubectl label pin cart-staging openchoreo.dev/component=pay --overwrite"),
        run(
            "kubectl patch pin cart-staging --subresource=status --type=merge --patch-file pin-status.yaml",
        ),
        run("kubectl get pin -o wide"),
        run("kubectl wait --for=condition=Ready pin/cart-staging --timeout=10s"),
        run(
            "kubectl wait --for=condition=Ready=False pin/cart-staging --timeout=10s & sleep 0; kubectl patch pin cart-staging --subresource=status --type=json -p '[{\"op\":\"replace\",\"path\":\"/status/conditions/0/status\",\"value\":\"False\"}]' > /dev/null; wait $!",
        ),
        run(
            "kubectl wait --for=jsonpath='{.status.appliedRelease}'=cart-v1 pin/cart-staging --timeout=10s",
        ),
        run("kubectl wait --for=jsonpath='{.spec.component}' pin/cart-staging --timeout=10s"),
        run("kubectl wait --for=condition=Ready pin/nothing --timeout=10s"),
        run("kubectl wait --for=condition=Never pin/cart-staging --timeout=1s"),
        run(
            "kubectl wait --for=create pin/pay-staging --timeout=10s & kubectl create -f pins.yaml > /dev/null; wait $!",
        ),
        run(
            "kubectl wait --for=delete pin/pay-staging --timeout=10s > /dev/null & kubectl delete pin pay-staging > /dev/null; wait $!",
        ),
        run(
            "kubectl get pin cart-staging -o yaml > $WORK/pin.yaml; kubectl annotate pin cart-staging a=b",
        ),
        run("kubectl replace -f $WORK/pin.yaml"),
        run("kubectl replace --force -f pin.yaml"),
        run("EDITOR='sed -i s/cart-v1/cart-v7/' kubectl edit pin cart-staging"),
        run(
            "EDITOR='sed -i s/environment:.staging/environment:/' kubectl edit pin cart-staging > $WORK/edit; echo $?; grep -c . $WORK/edit",
        ),
        run("kubectl get pin --subresource=status cart-staging"),
        run("kubectl scale pin cart-staging --replicas=1"),
        run("kubectl get pins -A --field-selector metadata.namespace=pins"),
        run("kubectl delete pin cart-staging --dry-run=server"),
        run("kubectl delete pin cart-staging -o name"),
    ]
}

fn definitions() -> Vec<Row> {
    vec![
        run("kubectl get crd releasepins.openchoreo.dev"),
        run("kubectl get crd -l app.kubernetes.io/part-of=bowline -o name"),
        run(
            "kubectl get crd releasepins.openchoreo.dev -o jsonpath='{.status.acceptedNames}{.status.storedVersions}{.status.conditions}{\"\\n\"}'",
        ),
        run("kubectl wait --for=condition=Established crd/releases.openchoreo.dev --timeout=10s"),
        run("kubectl create -f definition.yaml"),
        run("kubectl wait --for=condition=Established crd/gadgets.kubectl.example --timeout=10s"),
        run("kubectl create -f definition.yaml"),
        run("kubectl get crd gadgets.kubectl.example -o yaml"),
        run("kubectl get crd gadgets.kubectl.example -o yaml --show-managed-fields"),
        run("kubectl api-resources --api-group=kubectl.example -o wide"),
        run("kubectl explain gadget --recursive"),
        run("kubectl explain gadget.spec.colour"),
        run("kubectl create -f gadget.yaml"),
        run("kubectl get gd"),
        run("kubectl get gd one -o wide"),
        run("kubectl get gd one -o yaml"),
        run("kubectl get all -o name"),
        run("kubectl describe gadget one"),
        run("sed s/blue/pink/ gadget.yaml | kubectl apply -f -"),
        run(
            "sed 's/one/two/;s/blue/red/;s/parts:/replicas: 7\\n  parts:/' gadget.yaml | kubectl apply -f -",
        ),
        run("sed 's/one/two/;s/bolt/a-very-long-name/' gadget.yaml | kubectl create -f -"),
        run("sed 's/one/two/;s/colour:/size:/' gadget.yaml | kubectl create -f -"),
        run("kubectl scale gadget one --replicas=3"),
        run("kubectl get gadget one --subresource=scale -o yaml"),
        run("kubectl patch gadget one --type=strategic -p '{\"spec\":{\"parts\":[]}}'"),
        run(
            "kubectl patch gadget one --type=merge -p '{\"spec\":{\"parts\":[{\"name\":\"pin\"}]}}'",
        ),
        run(
            "kubectl patch gadget one --subresource=status --type=merge -p '{\"status\":{\"replicas\":3,\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}'",
        ),
        run("kubectl get gadget one -o wide"),
        run(
            "kubectl patch crd gadgets.kubectl.example --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec/versions/0/additionalPrinterColumns\"}]'",
        ),
        run(
            "kubectl get crd gadgets.kubectl.example -o jsonpath='{.spec.versions[*].additionalPrinterColumns}{.metadata.generation}{\"\\n\"}'",
        ),
        run("kubectl describe crd gadgets.kubectl.example | grep -v -i 'time:'"),
        run(
            "sed 's/name: gadgets.kubectl/name: other.kubectl/' definition.yaml | kubectl create -f -",
        ),
        run("sed 's/type: object/type: thing/' definition.yaml | kubectl apply --server-side -f -"),
        run("kubectl delete crd gadgets.kubectl.example"),
        run("kubectl wait --for=delete crd/gadgets.kubectl.example --timeout=20s"),
        run("kubectl get crd gadgets.kubectl.example"),
        run("kubectl get validatingadmissionpolicies -l app.kubernetes.io/part-of=bowline"),
    ]
}

fn watched() -> Vec<Row> {
    vec![
        run("kubectl create -f configmap.yaml"),
        watch(
            "kubectl get cm settings -w --output-watch-events",
            &[
                (2, "kubectl label cm settings a=b"),
                (
                    3,
                    "kubectl patch cm settings --type=merge -p '{\"data\":{\"more\":\"1\"}}'",
                ),
                (4, "kubectl delete cm settings"),
            ],
            5,
        ),
        watch(
            "kubectl get cm -l app=shop -w -o name",
            &[
                (0, "kubectl create -f configmap.yaml"),
                (1, "kubectl label cm settings app=bank --overwrite"),
            ],
            2,
        ),
        run("kubectl apply -f pin.yaml"),
        watch(
            "kubectl get pin -w --output-watch-events -o wide",
            &[
                (
                    2,
                    "kubectl patch pin cart-staging --type=merge -p '{\"spec\":{\"releaseRef\":{\"name\":\"cart-v2\"}}}'",
                ),
                (
                    3,
                    "kubectl patch pin cart-staging --subresource=status --type=merge --patch-file pin-status.yaml",
                ),
                (4, "kubectl delete pin cart-staging"),
            ],
            5,
        ),
        run("kubectl apply -f deployment.yaml"),
        watch(
            "kubectl get deploy -w --output-watch-events",
            &[
                (2, "kubectl scale deploy web --replicas=7"),
                (3, "kubectl delete deploy web"),
            ],
            4,
        ),
        watch(
            "kubectl get cm -w -o jsonpath='{.metadata.name} {.data}{\"\\n\"}'",
            &[(1, "kubectl create cm late --from-literal=a=b")],
            2,
        ),
    ]
}

fn deleted() -> Vec<Row> {
    vec![
        run("kubectl create -f configmap.yaml"),
        run(
            "kubectl patch cm settings --type=merge -p '{\"metadata\":{\"finalizers\":[\"kubectl.example/wait\"]}}'",
        ),
        run("kubectl delete cm settings --wait=false"),
        run(
            "kubectl get cm settings -o jsonpath='{.metadata.finalizers} {.metadata.deletionTimestamp} {.metadata.deletionGracePeriodSeconds}'",
        ),
        run("kubectl delete cm settings --timeout=1s").apart(
            "over HTTP/1.1 the client complains that its own deadline cut a watch short",
            without_complaints,
        ),
        run(
            "kubectl patch cm settings --type=merge -p '{\"metadata\":{\"finalizers\":[\"kubectl.example/wait\",\"kubectl.example/more\"]}}'",
        ),
        run(
            "kubectl patch cm settings --type=json -p '[{\"op\":\"remove\",\"path\":\"/metadata/finalizers\"}]'",
        ),
        run("kubectl get cm settings"),
        run("kubectl apply -f pin.yaml"),
        run(
            "kubectl patch pin cart-staging --type=merge -p '{\"metadata\":{\"finalizers\":[\"kubectl.example/wait\"]}}'",
        ),
        run("kubectl delete pin cart-staging --wait=false"),
        run("kubectl get pin cart-staging"),
        run(
            "kubectl wait --for=delete pin/cart-staging --timeout=10s > /dev/null & kubectl patch pin cart-staging --type=merge -p '{\"metadata\":{\"finalizers\":null}}' > /dev/null; wait $!",
        ),
        run(
            "kubectl create cm parent && kubectl create cm child && kubectl patch cm child --type=merge -p \"{\\\"metadata\\\":{\\\"ownerReferences\\\":[{\\\"apiVersion\\\":\\\"v1\\\",\\\"kind\\\":\\\"ConfigMap\\\",\\\"name\\\":\\\"parent\\\",\\\"uid\\\":\\\"$(kubectl get cm parent -o jsonpath={.metadata.uid})\\\"}]}}\"",
        ),
        run(
            "kubectl delete cm parent --cascade=background && kubectl wait --for=delete cm/child --timeout=30s",
        ),
        run(
            "kubectl create cm parent && kubectl create cm child && kubectl patch cm child --type=merge -p \"{\\\"metadata\\\":{\\\"ownerReferences\\\":[{\\\"apiVersion\\\":\\\"v1\\\",\\\"kind\\\":\\\"ConfigMap\\\",\\\"name\\\":\\\"parent\\\",\\\"uid\\\":\\\"$(kubectl get cm parent -o jsonpath={.metadata.uid})\\\"}]}}\"",
        ),
        run("kubectl delete cm parent --cascade=orphan"),
        run("kubectl get cm child -o jsonpath='{.metadata.ownerReferences}{\"\\n\"}'"),
        run(
            "kubectl create cm parent && kubectl patch cm child --type=merge -p \"{\\\"metadata\\\":{\\\"ownerReferences\\\":[{\\\"apiVersion\\\":\\\"v1\\\",\\\"kind\\\":\\\"ConfigMap\\\",\\\"name\\\":\\\"parent\\\",\\\"blockOwnerDeletion\\\":true,\\\"uid\\\":\\\"$(kubectl get cm parent -o jsonpath={.metadata.uid})\\\"}]}}\"",
        ),
        run("kubectl delete cm parent --cascade=foreground"),
        run("kubectl get cm child parent -o name"),
        run("kubectl create -f deployment.yaml && kubectl delete deploy web --cascade=foreground"),
        run("kubectl create namespace short-lived"),
        run("kubectl create cm inside -n short-lived"),
        run("kubectl delete namespace short-lived"),
        run("kubectl get cm -n short-lived inside"),
        run("kubectl get namespace short-lived"),
        run("kubectl create cm inside -n short-lived"),
        run(
            "kubectl create cm raw && kubectl delete --raw /api/v1/namespaces/deleted/configmaps/raw | tr -d '{}' | sed s/.details.:// | tr , '\\n' | sort",
        ),
        run("kubectl delete cm nothing --now"),
        run("kubectl delete pin,cm --all"),
    ]
}

fn events() -> Vec<Row> {
    vec![
        run("kubectl create -f configmap.yaml"),
        run("kubectl create -f event.yaml"),
        run("kubectl get events | sed 's/[0-9]*d/DAYS/'"),
        run("kubectl get events -o wide | sed 's/[0-9]*d/DAYS/g'"),
        run("kubectl events | sed 's/[0-9]*d/DAYS/'"),
        run(
            "kubectl get events --field-selector involvedObject.name=settings,reason=Changed -o name",
        ),
        run("kubectl get events --field-selector type=Warning"),
        run(
            "kubectl get events.events.k8s.io -o jsonpath='{.items[*].note} {.items[*].regarding.name}{\"\\n\"}'",
        ),
        run("kubectl describe cm settings | sed 's/[0-9]*d/DAYS/'"),
    ]
}

fn identity() -> Vec<Row> {
    vec![
        run("kubectl auth whoami").apart("a token file gives its users a uid", without_uid),
        run("kubectl auth whoami -o jsonpath='{.status.userInfo.username} {.kind} {.apiVersion}'"),
        run("kubectl auth can-i create configmaps"),
        run("kubectl auth can-i '*' '*' --all-namespaces"),
        run("kubectl auth can-i get pin/cart-staging"),
        run("kubectl auth can-i promote environments.openchoreo.dev"),
        run("kubectl get cm --as=admin --as-group=system:masters"),
        run("kubectl auth whoami --as=ana --as-group=crew"),
        run("kubectl get cm --request-timeout=5s"),
        run("kubectl get ns identity -o yaml"),
        run("kubectl get ns identity default"),
        run("kubectl create quota"),
    ]
}
