package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

var pins = schema.GroupVersionResource{Group: "openchoreo.dev", Version: "v1alpha1", Resource: "releasepins"}

func clientChecks() []check {
	return []check{
		{"discovery", discovered},
		{"typed-protobuf", func(ctx context.Context, on *target) error { return typed(ctx, on, "") }},
		{"typed-json", func(ctx context.Context, on *target) error { return typed(ctx, on, runtime.ContentTypeJSON) }},
		{"typed-kinds", typedKinds},
		{"typed-status", typedStatus},
		{"typed-scale", typedScale},
		{"typed-apply", typedApply},
		{"typed-patch", typedPatch},
		{"typed-watch", typedWatch},
		{"typed-conflict", typedConflict},
		{"typed-errors", typedErrors},
		{"typed-delete-options", typedDeleteOptions},
		{"typed-dry-run", typedDryRun},
		{"selectors", selectors},
		{"pagination", pagination},
		{"definitions", definitions},
		{"dynamic", dynamicObjects},
		{"dynamic-apply", dynamicApply},
		{"metadata", metadataOnly},
		{"informers", sharedInformers},
		{"dynamic-informers", dynamicInformers},
		{"metadata-informers", metadataInformers},
		{"reviews", reviews},
		{"recorder", recorder},
		{"leader-election", leaderElection},
	}
}

func (on *target) typed() kubernetes.Interface { return kubernetes.NewForConfigOrDie(on.config) }
func (on *target) dynamic() dynamic.Interface  { return dynamic.NewForConfigOrDie(on.config) }

func (on *target) makeNamespace(ctx context.Context) error {
	_, err := on.typed().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: on.namespace}}, metav1.CreateOptions{})
	return err
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "shop"}}, Data: data}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:  "main",
					Image: "registry.example/web:v1",
					Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
					Resources: corev1.ResourceRequirements{
						Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
					},
					ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
						HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(8080)},
					}},
				}}},
			},
		},
	}
}

func pin(component, environment, release string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "openchoreo.dev/v1alpha1",
		"kind":       "ReleasePin",
		"metadata": map[string]any{
			"name": component + "-" + environment,
			"labels": map[string]any{
				"openchoreo.dev/component":   component,
				"openchoreo.dev/environment": environment,
			},
		},
		"spec": map[string]any{
			"component":   component,
			"environment": environment,
			"releaseRef":  map[string]any{"name": release},
		},
	}}
}

func discovered(_ context.Context, on *target) error {
	client := discovery.NewDiscoveryClientForConfigOrDie(on.config)
	version, err := client.ServerVersion()
	if err != nil {
		return err
	}
	if err := expect("the minor version", version.Minor, "36"); err != nil {
		return err
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	for _, list := range lists {
		for _, each := range list.APIResources {
			if list.GroupVersion == pins.GroupVersion().String() && each.Name == "releasepins" {
				return expect("the kind", each.Kind, "ReleasePin")
			}
		}
	}
	return errors.New("releasepins are not discovered")
}

func typed(ctx context.Context, on *target, contentType string) error {
	on.config.ContentType = contentType
	client := on.typed().CoreV1().ConfigMaps(on.namespace)
	made, err := client.Create(ctx, configMap("a", map[string]string{"colour": "blue", "empty": ""}), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if made.UID == "" || made.ResourceVersion == "" || made.CreationTimestamp.IsZero() {
		return fmt.Errorf("no identity: %v", made.ObjectMeta)
	}
	made.Data["colour"] = "green"
	made.BinaryData = map[string][]byte{"raw": {0, 1, 254}}
	changed, err := client.Update(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if err := expect("the colour", changed.Data["colour"], "green"); err != nil {
		return err
	}
	read, err := client.Get(ctx, "a", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := expect("raw", string(read.BinaryData["raw"]), "\x00\x01\xfe"); err != nil {
		return err
	}
	if _, there := read.Data["empty"]; !there {
		return errors.New("an empty value is gone")
	}
	secrets := on.typed().CoreV1().Secrets(on.namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "keys-"}, StringData: map[string]string{"token": "s3cret"}}
	kept, err := secrets.Create(ctx, secret, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := expect("the token", string(kept.Data["token"]), "s3cret"); err != nil {
		return err
	}
	if err := client.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err = client.Get(ctx, "a", metav1.GetOptions{})
	return expect("not found", apierrors.IsNotFound(err), true)
}

// typedKinds sends an object of every data plane kind as protobuf, and reads it back.
func typedKinds(ctx context.Context, on *target) error {
	client, in := on.typed(), on.namespace
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	web, err := client.AppsV1().Deployments(in).Create(ctx, deployment("web", 0), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	container := web.Spec.Template.Spec.Containers[0]
	limit := container.Resources.Limits[corev1.ResourceMemory]
	for _, err := range []error{
		expect("replicas", *web.Spec.Replicas, 0),
		expect("the memory", limit.String(), "64Mi"),
		expect("the probe's port", container.ReadinessProbe.HTTPGet.Port.IntValue(), 8080),
		expect("the default protocol", container.Ports[0].Protocol, corev1.ProtocolTCP),
		expect("the default strategy", web.Spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType),
		expect("the default surge", web.Spec.Strategy.RollingUpdate.MaxSurge.String(), "25%"),
		expect("the generation", web.Generation, 1),
	} {
		if err != nil {
			return err
		}
	}
	template := web.Spec.Template
	job := &batchv1.Job{ObjectMeta: meta("once"), Spec: batchv1.JobSpec{Template: *template.DeepCopy()}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if _, err := client.BatchV1().Jobs(in).Create(ctx, job, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	stateful := &appsv1.StatefulSet{ObjectMeta: meta("db"), Spec: appsv1.StatefulSetSpec{ServiceName: "db", Selector: web.Spec.Selector, Template: *template.DeepCopy()}}
	if _, err := client.AppsV1().StatefulSets(in).Create(ctx, stateful, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("statefulset: %w", err)
	}
	service := &corev1.Service{ObjectMeta: meta("web"), Spec: corev1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}}}}
	made, err := client.CoreV1().Services(in).Create(ctx, service, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("service: %w", err)
	}
	if err := expect("the target port", made.Spec.Ports[0].TargetPort.String(), "http"); err != nil {
		return err
	}
	least := intstr.FromString("50%")
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: meta("web"), Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: web.Spec.Selector}}
	if _, err := client.PolicyV1().PodDisruptionBudgets(in).Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("budget: %w", err)
	}
	wall := &networkingv1.NetworkPolicy{ObjectMeta: meta("wall"), Spec: networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}}}}
	if _, err := client.NetworkingV1().NetworkPolicies(in).Create(ctx, wall, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("network policy: %w", err)
	}
	role := &rbacv1.Role{ObjectMeta: meta("reader"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}}}
	if _, err := client.RbacV1().Roles(in).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("role: %w", err)
	}
	pod := &corev1.Pod{ObjectMeta: meta("lone"), Spec: *template.Spec.DeepCopy()}
	lone, err := client.CoreV1().Pods(in).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("pod: %w", err)
	}
	lone.Status.Phase = corev1.PodRunning
	if _, err := client.CoreV1().Pods(in).UpdateStatus(ctx, lone, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("the pod's status: %w", err)
	}
	running, err := client.CoreV1().Pods(in).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
	if err != nil {
		return err
	}
	return expect("running pods", len(running.Items), 1)
}

func typedStatus(ctx context.Context, on *target) error {
	client := on.typed().AppsV1().Deployments(on.namespace)
	web, err := client.Create(ctx, deployment("web", 2), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	web.Spec.Replicas = new(int32)
	web.Status.Replicas, web.Status.ReadyReplicas = 2, 2
	web.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastUpdateTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
	web, err = client.UpdateStatus(ctx, web, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	for _, err := range []error{
		expect("ready replicas", web.Status.ReadyReplicas, 2),
		expect("the conditions", len(web.Status.Conditions), 1),
		expect("replicas, which status must not change", *web.Spec.Replicas, 2),
		expect("the generation", web.Generation, 1),
	} {
		if err != nil {
			return err
		}
	}
	web.Status.ReadyReplicas = 9
	web, err = client.Update(ctx, web, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	return expect("ready replicas, which the object must not change", web.Status.ReadyReplicas, 2)
}

func typedScale(ctx context.Context, on *target) error {
	client := on.typed().AppsV1().Deployments(on.namespace)
	if _, err := client.Create(ctx, deployment("web", 2), metav1.CreateOptions{}); err != nil {
		return err
	}
	scale, err := client.GetScale(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := expect("the selector", scale.Status.Selector, "app=web"); err != nil {
		return err
	}
	scale.Spec.Replicas = 5
	if scale, err = client.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := expect("the scale", scale.Spec.Replicas, 5); err != nil {
		return err
	}
	stale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: on.namespace, ResourceVersion: "1"}}
	if _, err = client.UpdateScale(ctx, "web", stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("a stale scale: %v", err)
	}
	web, err := client.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect("the generation", web.Generation, 2)
}

func typedApply(ctx context.Context, on *target) error {
	client := on.typed().AppsV1().Deployments(on.namespace)
	labels := map[string]string{"app": "web"}
	wanted := func(image string) *applyappsv1.DeploymentApplyConfiguration {
		return applyappsv1.Deployment("web", on.namespace).WithLabels(labels).WithSpec(
			applyappsv1.DeploymentSpec().
				WithSelector(applymetav1.LabelSelector().WithMatchLabels(labels)).
				WithTemplate(applycorev1.PodTemplateSpec().WithLabels(labels).WithSpec(
					applycorev1.PodSpec().WithContainers(applycorev1.Container().WithName("main").WithImage(image)))))
	}
	ours := metav1.ApplyOptions{FieldManager: "ours"}
	if _, err := client.Apply(ctx, wanted("a:1"), ours); err != nil {
		return err
	}
	_, err := client.Apply(ctx, wanted("a:2"), metav1.ApplyOptions{FieldManager: "theirs"})
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("no conflict: %v", err)
	}
	if _, err = client.Apply(ctx, wanted("a:2"), metav1.ApplyOptions{FieldManager: "theirs", Force: true}); err != nil {
		return err
	}
	web, err := client.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := expect("the image", web.Spec.Template.Spec.Containers[0].Image, "a:2"); err != nil {
		return err
	}
	extracted, err := applyappsv1.ExtractDeployment(web, "theirs")
	if err != nil {
		return err
	}
	if err := expect("what theirs owns", *extracted.Spec.Template.Spec.Containers[0].Image, "a:2"); err != nil {
		return err
	}
	status := applyappsv1.Deployment("web", on.namespace).WithStatus(applyappsv1.DeploymentStatus().WithReplicas(3).WithReadyReplicas(3))
	web, err = client.ApplyStatus(ctx, status, ours)
	if err != nil {
		return err
	}
	return expect("ready replicas", web.Status.ReadyReplicas, 3)
}

func typedPatch(ctx context.Context, on *target) error {
	client := on.typed().AppsV1().Deployments(on.namespace)
	if _, err := client.Create(ctx, deployment("web", 2), metav1.CreateOptions{}); err != nil {
		return err
	}
	patches := []struct {
		kind types.PatchType
		body string
	}{
		{types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"b"}]}}}}`},
		{types.MergePatchType, `{"metadata":{"annotations":{"a":"b"}}}`},
		{types.JSONPatchType, `[{"op":"replace","path":"/spec/replicas","value":4}]`},
		{types.ApplyPatchType, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"c":"d"}}}`},
	}
	for _, each := range patches {
		options := metav1.PatchOptions{}
		if each.kind == types.ApplyPatchType {
			options.FieldManager = "ours"
		}
		if _, err := client.Patch(ctx, "web", each.kind, []byte(each.body), options); err != nil {
			return fmt.Errorf("%s: %w", each.kind, err)
		}
	}
	web, err := client.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, err := range []error{
		expect("the containers", len(web.Spec.Template.Spec.Containers), 2),
		expect("the annotation", web.Annotations["a"], "b"),
		expect("the replicas", *web.Spec.Replicas, 4),
		expect("the label", web.Labels["c"], "d"),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func typedWatch(ctx context.Context, on *target) error {
	client := on.typed().CoreV1().ConfigMaps(on.namespace)
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	watching, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "app=shop"})
	if err != nil {
		return err
	}
	defer watching.Stop()
	if _, err := client.Create(ctx, configMap("a", nil), metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := client.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"x":"y"}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := client.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		return err
	}
	for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		select {
		case event := <-watching.ResultChan():
			if err := expect("the event", event.Type, kind); err != nil {
				return err
			}
			if _, ok := event.Object.(*corev1.ConfigMap); !ok {
				return fmt.Errorf("a %T came", event.Object)
			}
		case <-ctx.Done():
			return fmt.Errorf("no %s came", kind)
		}
	}
	return nil
}

func typedConflict(ctx context.Context, on *target) error {
	client := on.typed().CoreV1().ConfigMaps(on.namespace)
	first, err := client.Create(ctx, configMap("a", map[string]string{"n": "0"}), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	stale := first.DeepCopy()
	first.Data["n"] = "1"
	if _, err := client.Update(ctx, first, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if _, err := client.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("no conflict: %v", err)
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		newest, err := client.Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		newest.Data["n"] = "2"
		_, err = client.Update(ctx, newest, metav1.UpdateOptions{})
		return err
	})
}

func typedErrors(ctx context.Context, on *target) error {
	client := on.typed().CoreV1().ConfigMaps(on.namespace)
	if _, err := client.Create(ctx, configMap("a", nil), metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := client.Create(ctx, configMap("a", nil), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("already exists: %v", err)
	}
	_, err = client.Create(ctx, configMap("No_Name", nil), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		return fmt.Errorf("invalid: %v", err)
	}
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || len(status.Status().Details.Causes) == 0 {
		return fmt.Errorf("no causes: %v", err)
	}
	broken := deployment("web", 1)
	broken.Spec.Template.Labels = map[string]string{"app": "other"}
	_, err = on.typed().AppsV1().Deployments(on.namespace).Create(ctx, broken, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		return fmt.Errorf("a selector that does not match: %v", err)
	}
	_, err = on.typed().CoreV1().ConfigMaps("no-such-namespace").Create(ctx, configMap("a", nil), metav1.CreateOptions{})
	return expect("a namespace that is not there is not found", apierrors.IsNotFound(err), true)
}

func typedDeleteOptions(ctx context.Context, on *target) error {
	client := on.typed().CoreV1().ConfigMaps(on.namespace)
	made, err := client.Create(ctx, configMap("a", nil), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	other := types.UID("11111111-2222-3333-4444-555555555555")
	err = client.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("another uid: %v", err)
	}
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID, ResourceVersion: &made.ResourceVersion}, PropagationPolicy: &background}
	if err := client.Delete(ctx, "a", options); err != nil {
		return err
	}
	for _, name := range []string{"b", "c"} {
		if _, err := client.Create(ctx, configMap(name, nil), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=shop"}); err != nil {
		return err
	}
	left, err := client.List(ctx, metav1.ListOptions{LabelSelector: "app=shop"})
	if err != nil {
		return err
	}
	return expect("what is left", len(left.Items), 0)
}

func typedDryRun(ctx context.Context, on *target) error {
	client := on.typed().CoreV1().ConfigMaps(on.namespace)
	all := []string{metav1.DryRunAll}
	made, err := client.Create(ctx, configMap("a", nil), metav1.CreateOptions{DryRun: all})
	if err != nil {
		return err
	}
	if made.UID == "" {
		return errors.New("a dry run makes no uid")
	}
	if _, err := client.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("a dry run stored something: %v", err)
	}
	if made, err = client.Create(ctx, configMap("a", nil), metav1.CreateOptions{}); err != nil {
		return err
	}
	made.Data = map[string]string{"x": "y"}
	if _, err := client.Update(ctx, made, metav1.UpdateOptions{DryRun: all}); err != nil {
		return err
	}
	if err := client.Delete(ctx, "a", metav1.DeleteOptions{DryRun: all}); err != nil {
		return err
	}
	read, err := client.Get(ctx, "a", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect("the data", len(read.Data), 0)
}

func selectors(ctx context.Context, on *target) error {
	client := on.dynamic().Resource(pins).Namespace(on.namespace)
	for _, each := range [][3]string{{"cart", "staging", "cart-v1"}, {"cart", "production", "cart-v1"}, {"pay", "staging", "pay-v2"}} {
		if _, err := client.Create(ctx, pin(each[0], each[1], each[2]), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, each := range []struct {
		labels, fields, want string
	}{
		{"openchoreo.dev/component=cart", "", "cart-production cart-staging"},
		{"openchoreo.dev/component in (pay),openchoreo.dev/environment", "", "pay-staging"},
		{"", "spec.environment=staging", "cart-staging pay-staging"},
		{"", "spec.releaseRef.name=cart-v1,metadata.name!=cart-staging", "cart-production"},
		{"openchoreo.dev/component!=cart", "spec.environment=production", ""},
	} {
		list, err := client.List(ctx, metav1.ListOptions{LabelSelector: each.labels, FieldSelector: each.fields})
		if err != nil {
			return err
		}
		names := []string{}
		for _, item := range list.Items {
			names = append(names, item.GetName())
		}
		sort.Strings(names)
		if err := expect(each.labels+" "+each.fields, strings.Join(names, " "), each.want); err != nil {
			return err
		}
	}
	_, err := client.List(ctx, metav1.ListOptions{FieldSelector: "spec.holds=x"})
	return expect("a field that nobody offers is a bad request", apierrors.IsBadRequest(err), true)
}

func pagination(ctx context.Context, on *target) error {
	client := on.typed().CoreV1().ConfigMaps(on.namespace)
	for i := range 25 {
		if _, err := client.Create(ctx, configMap(fmt.Sprintf("page-%02d", i), nil), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	first, err := client.List(ctx, metav1.ListOptions{Limit: 10, LabelSelector: "app"})
	if err != nil {
		return err
	}
	if err := expect("the first page", len(first.Items), 10); err != nil {
		return err
	}
	seen := 0
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		options.LabelSelector = "app=shop"
		return client.List(ctx, options)
	})
	pages.PageSize = 7
	err = pages.EachListItem(ctx, metav1.ListOptions{}, func(runtime.Object) error {
		seen++
		return nil
	})
	if err != nil {
		return err
	}
	return expect("the objects of all pages", seen, 25)
}

func definitions(ctx context.Context, on *target) error {
	client := apiextensions.NewForConfigOrDie(on.config).ApiextensionsV1().CustomResourceDefinitions()
	preserve, least := true, 1.5
	boat := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "boats.goclient.example"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "goclient.example",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "boats", Kind: "Boat"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
					Scale:  &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"},
				},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {
							Type:     "object",
							Required: []string{"length"},
							Properties: map[string]apiextensionsv1.JSONSchemaProps{
								"length":   {Type: "number", Minimum: &least},
								"colour":   {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"white"`)}},
								"replicas": {Type: "integer"},
								"crew":     {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}},
								"cargo":    {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{Type: "integer"}}},
							},
							XValidations: apiextensionsv1.ValidationRules{{Rule: "self.length < 100.0", Message: "that is a ship"}},
						},
						"status": {Type: "object", XPreserveUnknownFields: &preserve},
					},
				}},
			}},
		},
	}
	if _, err := client.Create(ctx, boat, metav1.CreateOptions{}); err != nil {
		return err
	}
	for {
		made, err := client.Get(ctx, boat.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		established := false
		for _, condition := range made.Status.Conditions {
			established = established || condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
		}
		if established {
			schema := made.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			if err := expect("the default", string(schema.Properties["colour"].Default.Raw), `"white"`); err != nil {
				return err
			}
			break
		}
		select {
		case <-ctx.Done():
			return errors.New("never established")
		case <-time.After(50 * time.Millisecond):
		}
	}
	boats := on.dynamic().Resource(schema.GroupVersionResource{Group: "goclient.example", Version: "v1", Resource: "boats"}).Namespace(on.namespace)
	make := func(length float64) (*unstructured.Unstructured, error) {
		return boats.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "goclient.example/v1", "kind": "Boat",
			"metadata": map[string]any{"name": "rosa"},
			"spec":     map[string]any{"length": length, "cargo": map[string]any{"rope": int64(3)}, "unknown": true},
		}}, metav1.CreateOptions{})
	}
	if _, err := make(0.5); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a boat that is too short: %v", err)
	}
	if _, err := make(200); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a boat that is too long: %v", err)
	}
	rosa, err := make(9.5)
	if err != nil {
		return err
	}
	colour, _, _ := unstructured.NestedString(rosa.Object, "spec", "colour")
	_, unknown, _ := unstructured.NestedFieldNoCopy(rosa.Object, "spec", "unknown")
	if err := errors.Join(expect("the colour", colour, "white"), expect("an unknown field", unknown, false)); err != nil {
		return err
	}
	scale, err := boats.Patch(ctx, "rosa", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{}, "scale")
	if err != nil {
		return err
	}
	replicas, _, _ := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	if err := expect("the scale", replicas, 3); err != nil {
		return err
	}
	return client.Delete(ctx, boat.Name, metav1.DeleteOptions{})
}

func dynamicObjects(ctx context.Context, on *target) error {
	client := on.dynamic().Resource(pins).Namespace(on.namespace)
	made, err := client.Create(ctx, pin("cart", "staging", "cart-v1"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(made.Object, "cart-v2", "spec", "releaseRef", "name"); err != nil {
		return err
	}
	moved, err := client.Update(ctx, made, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if err := expect("the generation", moved.GetGeneration(), 2); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(moved.Object, "cart-v2", "status", "appliedRelease"); err != nil {
		return err
	}
	told, err := client.UpdateStatus(ctx, moved, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	applied, _, _ := unstructured.NestedString(told.Object, "status", "appliedRelease")
	if err := errors.Join(expect("the status", applied, "cart-v2"), expect("the generation", told.GetGeneration(), 2)); err != nil {
		return err
	}
	if _, err := client.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("a stale copy: %v", err)
	}
	broken := pin("cart", "production", "cart-v1")
	broken.SetLabels(nil)
	if _, err := client.Create(ctx, broken, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a pin without labels: %v", err)
	}
	return client.Delete(ctx, "cart-staging", metav1.DeleteOptions{})
}

func dynamicApply(ctx context.Context, on *target) error {
	client := on.dynamic().Resource(pins).Namespace(on.namespace)
	if _, err := client.Apply(ctx, "cart-staging", pin("cart", "staging", "cart-v1"), metav1.ApplyOptions{FieldManager: "ours"}); err != nil {
		return err
	}
	_, err := client.Apply(ctx, "cart-staging", pin("cart", "staging", "cart-v2"), metav1.ApplyOptions{FieldManager: "theirs"})
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("no conflict: %v", err)
	}
	hold := pin("cart", "staging", "cart-v1")
	if err := unstructured.SetNestedSlice(hold.Object, []any{map[string]any{"id": "one", "owner": "ana", "since": "2026-01-05T13:40:00Z"}}, "spec", "holds"); err != nil {
		return err
	}
	if _, err := client.Apply(ctx, "cart-staging", hold, metav1.ApplyOptions{FieldManager: "ours"}); err != nil {
		return err
	}
	freed, err := client.Apply(ctx, "cart-staging", pin("cart", "staging", "cart-v1"), metav1.ApplyOptions{FieldManager: "ours"})
	if err != nil {
		return err
	}
	holds, _, _ := unstructured.NestedSlice(freed.Object, "spec", "holds")
	if err := expect("the holds", len(holds), 0); err != nil {
		return err
	}
	status := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "openchoreo.dev/v1alpha1", "kind": "ReleasePin",
		"metadata": map[string]any{"name": "cart-staging"},
		"status":   map[string]any{"appliedRelease": "cart-v1"},
	}}
	told, err := client.ApplyStatus(ctx, "cart-staging", status, metav1.ApplyOptions{FieldManager: "controller"})
	if err != nil {
		return err
	}
	applied, _, _ := unstructured.NestedString(told.Object, "status", "appliedRelease")
	return expect("the status", applied, "cart-v1")
}

func metadataOnly(ctx context.Context, on *target) error {
	made := on.dynamic().Resource(pins).Namespace(on.namespace)
	if _, err := made.Create(ctx, pin("cart", "staging", "cart-v1"), metav1.CreateOptions{}); err != nil {
		return err
	}
	client := metadata.NewForConfigOrDie(on.config).Resource(pins).Namespace(on.namespace)
	one, err := client.Get(ctx, "cart-staging", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := expect("the label", one.Labels["openchoreo.dev/component"], "cart"); err != nil {
		return err
	}
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: "openchoreo.dev/component=cart", Limit: 5})
	if err != nil {
		return err
	}
	if err := expect("the list", len(list.Items), 1); err != nil {
		return err
	}
	patched, err := client.Patch(ctx, "cart-staging", types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	if err := expect("the annotation", patched.Annotations["a"], "b"); err != nil {
		return err
	}
	watching, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: patched.ResourceVersion})
	if err != nil {
		return err
	}
	defer watching.Stop()
	if err := client.Delete(ctx, "cart-staging", metav1.DeleteOptions{}); err != nil {
		return err
	}
	select {
	case event := <-watching.ResultChan():
		if _, ok := event.Object.(*metav1.PartialObjectMetadata); !ok {
			return fmt.Errorf("a %T came", event.Object)
		}
		return expect("the event", event.Type, watch.Deleted)
	case <-ctx.Done():
		return errors.New("no event came")
	}
}

// follow changes objects while an informer watches, and waits until it has seen the changes.
func follow(ctx context.Context, informer cache.SharedIndexInformer, start func(), create, change, remove func() error) error {
	events := make(chan string, 64)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { events <- "added" },
		UpdateFunc: func(any, any) { events <- "updated" },
		DeleteFunc: func(any) { events <- "deleted" },
	})
	if err != nil {
		return err
	}
	start()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return errors.New("never in step")
	}
	for _, step := range []struct {
		do   func() error
		seen string
	}{{create, "added"}, {change, "updated"}, {remove, "deleted"}} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.seen, err)
		}
		select {
		case event := <-events:
			if err := expect("the event", event, step.seen); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("nothing was %s", step.seen)
		}
	}
	return nil
}

func sharedInformers(ctx context.Context, on *target) error {
	client := on.typed()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(on.namespace), informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.LabelSelector = "app=shop"
	}))
	maps := client.CoreV1().ConfigMaps(on.namespace)
	informer := factory.Core().V1().ConfigMaps()
	err := follow(ctx, informer.Informer(), func() { factory.Start(ctx.Done()) },
		func() error { _, err := maps.Create(ctx, configMap("a", nil), metav1.CreateOptions{}); return err },
		func() error {
			_, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"x":"y"}}`), metav1.PatchOptions{})
			return err
		},
		func() error { return maps.Delete(ctx, "a", metav1.DeleteOptions{}) })
	if err != nil {
		return err
	}
	_, err = informer.Lister().ConfigMaps(on.namespace).Get("a")
	return expect("the lister has forgotten it", apierrors.IsNotFound(err), true)
}

func dynamicInformers(ctx context.Context, on *target) error {
	client := on.dynamic()
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, on.namespace, nil)
	objects := client.Resource(pins).Namespace(on.namespace)
	return follow(ctx, factory.ForResource(pins).Informer(), func() { factory.Start(ctx.Done()) },
		func() error {
			_, err := objects.Create(ctx, pin("cart", "staging", "cart-v1"), metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := objects.Patch(ctx, "cart-staging", types.MergePatchType, []byte(`{"spec":{"releaseRef":{"name":"cart-v2"}}}`), metav1.PatchOptions{})
			return err
		},
		func() error { return objects.Delete(ctx, "cart-staging", metav1.DeleteOptions{}) })
}

func metadataInformers(ctx context.Context, on *target) error {
	objects := on.dynamic().Resource(pins).Namespace(on.namespace)
	factory := metadatainformer.NewFilteredSharedInformerFactory(metadata.NewForConfigOrDie(on.config), 0, on.namespace, nil)
	return follow(ctx, factory.ForResource(pins).Informer(), func() { factory.Start(ctx.Done()) },
		func() error {
			_, err := objects.Create(ctx, pin("cart", "staging", "cart-v1"), metav1.CreateOptions{})
			return err
		},
		func() error {
			_, err := objects.Patch(ctx, "cart-staging", types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`), metav1.PatchOptions{})
			return err
		},
		func() error { return objects.Delete(ctx, "cart-staging", metav1.DeleteOptions{}) })
}

func reviews(ctx context.Context, on *target) error {
	who, err := on.typed().AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := expect("the user", who.Status.UserInfo.Username, "admin"); err != nil {
		return err
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: on.namespace, Verb: "promote", Group: "openchoreo.dev", Resource: "environments"},
	}}
	may, err := on.typed().AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return expect("the admin may promote", may.Status.Allowed, true)
}

// recorder writes with the old recorder and reads through the new group.
func recorder(ctx context.Context, on *target) error {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: on.typed().CoreV1().Events(on.namespace)})
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a", Namespace: on.namespace, UID: "1"}
	broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "goclient"}).Event(about, corev1.EventTypeNormal, "Tested", "by Go")
	for {
		list, err := on.typed().EventsV1().Events(on.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return errors.Join(expect("the note", list.Items[0].Note, "by Go"), expect("the object", list.Items[0].Regarding.Name, "a"), newerEvent(ctx, on))
		}
		select {
		case <-ctx.Done():
			return errors.New("no event came")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func newerEvent(ctx context.Context, on *target) error {
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: "newer"},
		EventTime:           metav1.NowMicro(),
		ReportingController: "goclient", ReportingInstance: "one", Action: "Test", Reason: "Tested", Type: "Normal", Note: "in the new group",
		Regarding: corev1.ObjectReference{Kind: "ConfigMap", Name: "a", Namespace: on.namespace},
	}
	if _, err := on.typed().EventsV1().Events(on.namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		return err
	}
	read, err := on.typed().CoreV1().Events(on.namespace).Get(ctx, "newer", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect("the message", read.Message, "in the new group")
}

func leaderElection(ctx context.Context, on *target) error {
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, on.namespace, "leader", on.typed().CoreV1(), on.typed().CoordinationV1(), resourcelock.ResourceLockConfig{Identity: "one"})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	led := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { close(led) }, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() { elector.Run(ctx); close(done) }()
	select {
	case <-led:
	case <-ctx.Done():
		return errors.New("never leading")
	}
	lease, err := on.typed().CoordinationV1().Leases(on.namespace).Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return err
	}
	cancel()
	<-done
	return expect("the holder", *lease.Spec.HolderIdentity, "one")
}
