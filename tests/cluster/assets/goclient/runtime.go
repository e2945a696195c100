package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var pinKind = schema.GroupVersionKind{Group: "openchoreo.dev", Version: "v1alpha1", Kind: "ReleasePin"}

func init() {
	log.SetLogger(logr.Discard())
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}

func runtimeChecks() []check {
	return []check{
		{"runtime-client", runtimeClient},
		{"runtime-unstructured", runtimeUnstructured},
		{"runtime-apply", runtimeApply},
		{"runtime-controller", runtimeController},
	}
}

func (on *target) client() (client.Client, error) {
	return client.New(on.config, client.Options{Scheme: scheme.Scheme})
}

func runtimeClient(ctx context.Context, on *target) error {
	c, err := on.client()
	if err != nil {
		return err
	}
	web := deployment("web", 2)
	web.Namespace = on.namespace
	if err := c.Create(ctx, web); err != nil {
		return err
	}
	web.Status.Replicas, web.Status.ReadyReplicas = 2, 2
	if err := c.Status().Update(ctx, web); err != nil {
		return err
	}
	before := web.DeepCopy()
	web.Spec.Template.Spec.Containers[0].Image = "registry.example/web:v2"
	if err := c.Patch(ctx, web, client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	stale := before.DeepCopy()
	stale.Labels["stale"] = "yes"
	if err := c.Patch(ctx, stale, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
		return fmt.Errorf("a stale patch: %v", err)
	}
	result, err := controllerutil.CreateOrUpdate(ctx, c, web, func() error {
		web.Labels["changed"] = "yes"
		return nil
	})
	if err != nil {
		return err
	}
	if err := expect("the result", result, controllerutil.OperationResultUpdated); err != nil {
		return err
	}
	list := &appsv1.DeploymentList{}
	if err := c.List(ctx, list, client.InNamespace(on.namespace), client.MatchingLabels{"changed": "yes"}, client.Limit(5)); err != nil {
		return err
	}
	if err := expect("the list", len(list.Items), 1); err != nil {
		return err
	}
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	if err := c.Get(ctx, client.ObjectKeyFromObject(web), partial); err != nil {
		return err
	}
	if err := expect("the label of the metadata", partial.Labels["changed"], "yes"); err != nil {
		return err
	}
	if err := c.Delete(ctx, web, client.DryRunAll); err != nil {
		return err
	}
	return c.DeleteAllOf(ctx, &appsv1.Deployment{}, client.InNamespace(on.namespace), client.PropagationPolicy(metav1.DeletePropagationBackground))
}

func runtimeUnstructured(ctx context.Context, on *target) error {
	c, err := on.client()
	if err != nil {
		return err
	}
	object := pin("cart", "staging", "cart-v1")
	object.SetNamespace(on.namespace)
	if err := c.Create(ctx, object); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(object.Object, "cart-v1", "status", "appliedRelease"); err != nil {
		return err
	}
	if err := c.Status().Update(ctx, object); err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(pinKind.GroupVersion().WithKind("ReleasePinList"))
	if err := c.List(ctx, list, client.InNamespace(on.namespace), client.MatchingFields{"spec.component": "cart"}); err != nil {
		return err
	}
	if err := expect("the list", len(list.Items), 1); err != nil {
		return err
	}
	before := object.DeepCopy()
	if err := unstructured.SetNestedField(object.Object, "production", "spec", "environment"); err != nil {
		return err
	}
	if err := c.Patch(ctx, object, client.MergeFrom(before)); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a field that never changes: %v", err)
	}
	return c.Delete(ctx, before, client.Preconditions{UID: ptr(before.GetUID())})
}

func ptr[T any](value T) *T { return &value }

func runtimeApply(ctx context.Context, on *target) error {
	c, err := on.client()
	if err != nil {
		return err
	}
	object := pin("cart", "staging", "cart-v1")
	object.SetNamespace(on.namespace)
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("ours")); err != nil {
		return err
	}
	other := object.DeepCopy()
	if err := unstructured.SetNestedField(other.Object, "cart-v2", "spec", "releaseRef", "name"); err != nil {
		return err
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(other.DeepCopy()), client.FieldOwner("theirs")); !apierrors.IsConflict(err) {
		return fmt.Errorf("no conflict: %v", err)
	}
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(other.DeepCopy()), client.FieldOwner("theirs"), client.ForceOwnership)
}

const finalizer = "goclient.example/keep"

// reconciler keeps a ConfigMap for each ReleasePin, and a finalizer on the ReleasePin until the ConfigMap
// is deleted.
type reconciler struct {
	client.Client
	namespace string
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(pinKind)
	if err := r.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: object.GetName(), Namespace: object.GetNamespace()}}
	if object.GetDeletionTimestamp() != nil {
		if err := r.Delete(ctx, kept); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		if controllerutil.RemoveFinalizer(object, finalizer) {
			return ctrl.Result{}, r.Update(ctx, object)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(object, finalizer) {
		if err := r.Update(ctx, object); err != nil {
			return ctrl.Result{}, err
		}
	}
	release, _, _ := unstructured.NestedString(object.Object, "spec", "releaseRef", "name")
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, kept, func() error {
		kept.Data = map[string]string{"release": release}
		return controllerutil.SetControllerReference(object, kept, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	before := object.DeepCopy()
	if err := unstructured.SetNestedField(object.Object, release, "status", "appliedRelease"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Patch(ctx, object, client.MergeFrom(before))
}

func runtimeController(ctx context.Context, on *target) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		return err
	}
	manager, err := ctrl.NewManager(on.config, ctrl.Options{
		Scheme:  known,
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{on.namespace: {}}},
		Client:  client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return err
	}
	watched := &unstructured.Unstructured{}
	watched.SetGroupVersionKind(pinKind)
	if err := ctrl.NewControllerManagedBy(manager).Named("pins").For(watched).Owns(&corev1.ConfigMap{}).Complete(&reconciler{Client: manager.GetClient(), namespace: on.namespace}); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	if !manager.GetCache().WaitForCacheSync(ctx) {
		return errors.New("never in step")
	}
	direct, err := on.client()
	if err != nil {
		return err
	}
	object := pin("cart", "staging", "cart-v1")
	object.SetNamespace(on.namespace)
	if err := direct.Create(ctx, object); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(object)
	kept := &corev1.ConfigMap{}
	until := func(what string, holds func() (bool, error)) error {
		for {
			ok, err := holds()
			if err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			if ok {
				return nil
			}
			select {
			case err := <-ended:
				return fmt.Errorf("the manager ended: %w", err)
			case <-ctx.Done():
				return fmt.Errorf("never %s", what)
			case <-time.After(30 * time.Millisecond):
			}
		}
	}
	err = until("applied", func() (bool, error) {
		if err := direct.Get(ctx, key, object); err != nil {
			return false, err
		}
		applied, _, _ := unstructured.NestedString(object.Object, "status", "appliedRelease")
		return applied == "cart-v1", nil
	})
	if err != nil {
		return err
	}
	if err := direct.Get(ctx, key, kept); err != nil {
		return err
	}
	if err := direct.Delete(ctx, kept); err != nil {
		return err
	}
	err = until("healed", func() (bool, error) {
		err := direct.Get(ctx, key, kept)
		return err == nil && kept.DeletionTimestamp == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(pinKind)
	if err := manager.GetClient().Get(ctx, key, partial); err != nil {
		return fmt.Errorf("metadata from the cache: %w", err)
	}
	if err := expect("the finalizer", len(partial.Finalizers), 1); err != nil {
		return err
	}
	if err := direct.Delete(ctx, object); err != nil {
		return err
	}
	return until("gone", func() (bool, error) {
		err := direct.Get(ctx, key, object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}
