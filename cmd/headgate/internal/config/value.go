package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// convert turns a value, as a file, the environment or a flag gives it, into
// one of the key's kind. The error says what the value must be.
func (k key) convert(v any) (any, error) {
	switch k.kind {
	case reflect.TypeFor[string]():
		return text(v)
	case reflect.TypeFor[bool]():
		return boolean(v)
	case reflect.TypeFor[int]():
		return integer(v)
	case reflect.TypeFor[time.Duration]():
		return duration(v)
	default:
		return list(v)
	}
}

func text(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int, int64, float64, bool: // an unquoted password or name may look like one
		return fmt.Sprint(v), nil
	default:
		return nil, fmt.Errorf("must be text, is %s", describe(v))
	}
}

func boolean(v any) (any, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case string:
		if b, err := strconv.ParseBool(v); err == nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("must be true or false")
}

func integer(v any) (any, error) {
	switch v := v.(type) {
	case int:
		return v, nil
	case string:
		if n, err := strconv.Atoi(v); err == nil {
			return n, nil
		}
	}
	return nil, fmt.Errorf("must be a whole number")
}

func duration(v any) (any, error) {
	if d, ok := v.(time.Duration); ok {
		return d, nil
	}
	s, ok := v.(string)
	if !ok && v != 0 {
		return nil, fmt.Errorf("must be a duration with its unit, such as 500ms or 3s")
	}
	if !ok || s == "0" {
		return time.Duration(0), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return nil, fmt.Errorf("must be a duration with its unit, such as 500ms or 3s")
	}
	return d, nil
}

func list(v any) (any, error) {
	switch v := v.(type) {
	case []string:
		return v, nil
	case string:
		return split(v), nil
	case []any:
		out := make([]string, 0, len(v))
		for _, item := range v {
			s, ok := item.(string)
			if !ok {
				return nil, fmt.Errorf("must be a list of texts, holds %s", describe(item))
			}
			out = append(out, s)
		}
		return out, nil
	default:
		return nil, fmt.Errorf("must be a list, is %s", describe(v))
	}
}

// split reads a comma list; empty parts are skipped.
func split(s string) []string {
	out := []string{}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func describe(v any) string {
	switch v.(type) {
	case []any:
		return "a list"
	case map[string]any:
		return "a section"
	default:
		return fmt.Sprintf("%v", v)
	}
}
