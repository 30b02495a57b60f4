package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// DatasetConfig configures a source of a public dataset.
type DatasetConfig struct {
	Path     string              `json:"path"`     // file or directory with the rows; unset = downloaded
	Split    string              `json:"split"`    // split of the dataset to read; unset = all files of path
	Problems Problems            `json:"problems"` // all, an id, the name of a split, or a list of ids
	Exclude  []string            `json:"exclude"`  // ids, or prefixes of ids up to a dot, that "all" leaves out
	Splits   map[string][]string `json:"splits"`   // further splits: a name and its ids
	Repos    string              `json:"repos"`    // directory of git clones
	Trees    string              `json:"trees"`    // directory of prepared repositories, named by instance id
	Image    string              `json:"image"`    // container image; unset = the official one, build = a recipe makes the environment
	Recipes  string              `json:"recipes"`  // file of recipes, which say how to build the environments of tasks
	URL      string              `json:"url"`      // address of the rows; unset = the official dataset at a fixed revision
	SHA256   string              `json:"sha256"`   // hash of the download
}

// datasetSource is an env.Source with the rows of a dataset. It opens repositories only on request, because most tasks
// of a dataset are never run.
type datasetSource struct {
	name    string
	cfg     DatasetConfig
	version func(row *row) string // returns the version by which recipes are selected; nil if recipes have no versions
	make    func(*row) instance
	ids     func(string) string // converts an id of the benchmark to an instance id; nil if they are the same
	url     string              // address of the rows, at a fixed revision

	mu           sync.Mutex
	ready        bool
	list         []schemas.Task
	instanceByID map[string]instance
	trees        map[string]*workspace.Tree
}

var _ env.Source = (*datasetSource)(nil)

func (s *datasetSource) Name() string { return s.name }

func (s *datasetSource) Tasks(ctx context.Context) ([]schemas.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(s.list), nil
}

func (s *datasetSource) Tree(ctx context.Context, id string) (env.Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	in, known := s.instanceByID[id]
	if !known {
		return nil, fmt.Errorf("task source %q has no task %q", s.name, id)
	}
	if t := s.trees[id]; t != nil {
		return t, nil
	}
	repos := repositories{s.cfg.Repos, s.cfg.Trees, taskfile.DefaultCache()}
	t, err := repos.open(ctx, id, in.repo, in.commit)
	if err == nil && in.change != nil {
		t, err = in.change(t)
	}
	if err != nil {
		return nil, err
	}
	s.trees[id] = t
	return t, nil
}

func (s *datasetSource) load(ctx context.Context) error {
	if s.ready {
		return nil
	}
	path := s.cfg.Path
	if path == "" {
		d := download{URL: cmp.Or(s.cfg.URL, s.url), SHA256: s.cfg.SHA256, Dir: filepath.Join(filepath.Dir(taskfile.DefaultCache()), "datasets")}
		var err error
		if path, err = d.get(ctx); err != nil {
			return fmt.Errorf("%w: or name the file on this machine with tasks.with.path", err)
		}
	}
	rows, err := readRows(ctx, path, s.cfg.Split)
	if err != nil {
		return err
	}
	recipes, err := readRecipes(s.cfg.Recipes, s.cfg.Image)
	if err != nil {
		return err
	}
	byID, ids, err := s.instances(rows)
	if err != nil {
		return err
	}
	chosen, err := s.cfg.Problems.convertIDs(s.ids).choose(ids, s.cfg.Splits, s.cfg.Exclude)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		return errors.New("problems and exclude leave no instance")
	}
	if s.list, err = s.complete(chosen, byID, recipes); err != nil {
		return err
	}
	s.instanceByID, s.trees, s.ready = byID, map[string]*workspace.Tree{}, true
	return nil
}

// complete applies recipes to the chosen instances and returns their tasks. Other instances do not need recipes.
func (s *datasetSource) complete(chosen []string, byID map[string]instance, recipes recipeBook) (list []schemas.Task, err error) {
	var problems []error
	for _, id := range chosen {
		in := byID[id]
		if err := recipes.apply(&in, in.version, s.cfg.Image); err != nil {
			if problems = append(problems, fmt.Errorf("%s: %w", in.where, err)); len(problems) >= maxProblems {
				break
			}
		}
		in.task.Source = s.name
		in.task = taskfile.Complete(in.task, s.name)
		byID[id] = in
		list = append(list, in.task)
	}
	return list, errors.Join(problems...)
}

// instances makes a task from every row. It returns them by id, and their ids in the order of the rows. The error names
// the rows that cannot be used.
func (s *datasetSource) instances(rows []row) (map[string]instance, []string, error) {
	byID := map[string]instance{}
	var ids []string
	var problems []error
	where, hashes := map[string]string{}, map[string]string{} // of the rows, by instance id
	for i := range rows {
		r := &rows[i]
		in := s.make(r)
		if len(r.problems) == 0 {
			for _, p := range taskfile.Problems(in.task) {
				r.problem("%s", p.Text)
			}
		}
		if other := where[in.task.InstanceID]; other != "" && len(r.problems) == 0 {
			if schemas.Hash(r.fields) == hashes[in.task.InstanceID] { // some releases of datasets repeat rows
				continue
			}
			r.problem("instance %q is already at %s, with other content", in.task.InstanceID, other)
		}
		hashes[in.task.InstanceID] = schemas.Hash(r.fields)
		where[in.task.InstanceID] = r.where
		if len(r.problems) > 0 {
			if problems = append(problems, r.problems...); len(problems) >= maxProblems {
				break
			}
			continue
		}
		if in.where = r.where; s.version != nil {
			in.version = s.version(r)
		}
		byID[in.task.InstanceID] = in
		ids = append(ids, in.task.InstanceID)
	}
	return byID, ids, errors.Join(problems...)
}

// sortedKeys returns the members of a set, sorted.
func sortedKeys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
