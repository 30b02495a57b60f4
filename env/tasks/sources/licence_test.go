package sources

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLicenceOfARepository(t *testing.T) {
	const mit = "MIT License\n\nCopyright (c) 2020 A. Person\n\nPermission is hereby granted, free of charge, to any person obtaining a copy\n"
	const apache = "Apache License\nVersion 2.0, January 2004\n"
	for name, c := range map[string]struct {
		files    map[string]string
		id, from string
	}{
		"file":             {map[string]string{"LICENSE": mit}, "MIT", "LICENSE"},
		"file in markdown": {map[string]string{"LICENCE.md": mit, "pyproject.toml": "license = \"ISC\""}, "MIT", "LICENCE.md"},
		"metadata":         {map[string]string{"pyproject.toml": "[project]\nlicense = {text = \"Apache-2.0\"}\n"}, "Apache-2.0", "pyproject.toml"},
		"classifier":       {map[string]string{"setup.py": "setup(classifiers=['License :: OSI Approved :: MIT License'])"}, "MIT", "setup.py"},
		"which BSD":        {map[string]string{"setup.py": "setup(license='BSD')"}, "", ""},
		"two of them":      {map[string]string{"LICENSE-MIT": mit, "LICENSE-APACHE": apache}, "", ""},
		"unknown text":     {map[string]string{"LICENSE": "Ask me."}, "", ""},
		"not at the root":  {map[string]string{"vendored/LICENSE": mit}, "", ""},
		"nothing":          {map[string]string{"main.py": "print(1)\n"}, "", ""},
		"twice the same":   {map[string]string{"LICENSE": mit, "COPYING": mit}, "MIT", "COPYING"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			source, err := newPath(PathConfig{Path: dir, Entrypoint: "true"})
			if err != nil {
				t.Fatal(err)
			}
			tasks, err := source.Tasks(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tasks[0].License != c.id || tasks[0].LicenseFile != c.from {
				t.Errorf("licence %q of %q, want %q of %q", tasks[0].License, tasks[0].LicenseFile, c.id, c.from)
			}
		})
	}
}
