package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// Types with a JSON form of their own, which is not an object with their fields.
var special = map[reflect.Type]string{
	reflect.TypeFor[metav1.Time]():                                "time",
	reflect.TypeFor[metav1.MicroTime]():                           "microtime",
	reflect.TypeFor[metav1.FieldsV1]():                            "raw",
	reflect.TypeFor[runtime.RawExtension]():                       "raw",
	reflect.TypeFor[apiextensions.JSON]():                         "raw",
	reflect.TypeFor[resource.Quantity]():                          "quantity",
	reflect.TypeFor[intstr.IntOrString]():                         "intorstring",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():        "schemaorbool",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray]():       "schemaorarray",
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): "schemaorstrings",
}

// wire prints how the kinds of builtin.json look in protobuf: by type, the fields with their
// number, JSON name, type and shape (* pointer, ? left out when zero, [] list, {} map, < inline).
func wire(builtin string) error {
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		return err
	}
	if err := apiextensions.AddToScheme(known); err != nil {
		return err
	}
	text, err := os.ReadFile(builtin)
	if err != nil {
		return err
	}
	var table struct {
		Resources []struct {
			Group, Version, Kind string
			Subresources         []struct{ Group, Version, Kind string }
		}
	}
	if err := json.Unmarshal(text, &table); err != nil {
		return err
	}
	kinds := map[string]string{}
	types := map[string][]string{}
	add := func(group, version, kind string) {
		gvk := schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
		object, ok := known.AllKnownTypes()[gvk]
		if ok {
			kinds[gvk.GroupVersion().String()+" "+kind] = describe(object, types)
		}
	}
	for _, resource := range table.Resources {
		add(resource.Group, resource.Version, resource.Kind)
		for _, part := range resource.Subresources {
			add(part.Group, part.Version, part.Kind)
		}
	}
	kinds["DeleteOptions"] = describe(reflect.TypeFor[metav1.DeleteOptions](), types)
	return printTable(kinds, types)
}

func describe(t reflect.Type, types map[string][]string) string {
	if name, ok := special[t]; ok {
		if strings.HasPrefix(name, "schema") {
			describe(reflect.TypeFor[apiextensions.JSONSchemaProps](), types)
		}
		return name
	}
	_, generated := reflect.PointerTo(t).MethodByName("MarshalToSizedBuffer")
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "int"
	case reflect.Float64:
		return "double"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if generated && t.Elem().Kind() == reflect.String {
			return "strings"
		}
	case reflect.Struct:
		if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
			panic("how is this written in JSON? " + t.String())
		}
		return structure(t, types)
	}
	panic("what is this? " + t.String())
}

func structure(t reflect.Type, types map[string][]string) string {
	path := strings.Split(t.PkgPath(), "/")
	name := strings.Join(path[len(path)-2:], ".") + "." + t.Name()
	if _, ok := types[name]; ok {
		return name
	}
	types[name] = []string{}
	fields := map[int]string{}
	for i := range t.NumField() {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		number, err := strconv.Atoi(tag[1])
		if err != nil {
			panic(err)
		}
		words := strings.Split(field.Tag.Get("json"), ",")
		has := func(word string) bool {
			for _, each := range words[1:] {
				if each == word {
					return true
				}
			}
			return false
		}
		shape, inner := "", field.Type
		_, message := reflect.PointerTo(inner).MethodByName("MarshalToSizedBuffer")
		switch {
		case has("inline") || words[0] == "":
			shape = "<"
		case inner.Kind() == reflect.Pointer:
			shape, inner = "*", inner.Elem()
		case inner.Kind() == reflect.Map:
			shape, inner = "{}", inner.Elem()
		case inner.Kind() == reflect.Slice && inner.Elem().Kind() != reflect.Uint8 && !message:
			shape, inner = "[]", inner.Elem()
		case has("omitzero") || has("omitempty") && inner.Kind() != reflect.Struct:
			shape = "?"
		}
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		fields[number] = fmt.Sprintf("%d %s %s%s", number, words[0], shape, describe(inner, types))
	}
	numbers := []int{}
	for number := range fields {
		numbers = append(numbers, number)
	}
	sort.Ints(numbers)
	for _, number := range numbers {
		types[name] = append(types[name], fields[number])
	}
	return name
}

// printTable writes each type on one line, so that a change gives a small diff.
func printTable(kinds map[string]string, types map[string][]string) error {
	line := func(names []string, value func(string) any) (string, error) {
		sort.Strings(names)
		lines := []string{}
		for _, name := range names {
			text, err := json.Marshal(value(name))
			if err != nil {
				return "", err
			}
			lines = append(lines, fmt.Sprintf("%q: %s", name, strings.ReplaceAll(string(text), `\u003c`, "<")))
		}
		return strings.Join(lines, ",\n"), nil
	}
	var kindNames, typeNames []string
	for name := range kinds {
		kindNames = append(kindNames, name)
	}
	for name := range types {
		typeNames = append(typeNames, name)
	}
	first, err := line(kindNames, func(name string) any { return kinds[name] })
	if err != nil {
		return err
	}
	second, err := line(typeNames, func(name string) any { return types[name] })
	if err != nil {
		return err
	}
	fmt.Printf("{\"kinds\": {\n%s\n},\n\"types\": {\n%s\n}}\n", first, second)
	return nil
}
