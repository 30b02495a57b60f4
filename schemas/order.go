package schemas

import "cmp"

// Compare orders episodes as table episodes is sorted: split, repo,
// instance_id, episode_id.
func (e EpisodeRow) Compare(o EpisodeRow) int {
	return cmp.Or(cmp.Compare(e.Split, o.Split), cmp.Compare(e.Repo, o.Repo),
		cmp.Compare(e.InstanceID, o.InstanceID), cmp.Compare(e.EpisodeID, o.EpisodeID))
}
