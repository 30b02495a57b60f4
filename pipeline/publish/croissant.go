package publish

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// croissantContext is the JSON-LD context of MLCommons Croissant 1.0
// (docs.mlcommons.org/croissant/docs/croissant-spec.html, appendix 1).
const croissantContext = `{"@language":"en","@vocab":"https://schema.org/","citeAs":"cr:citeAs","column":"cr:column","conformsTo":"dct:conformsTo",` +
	`"cr":"http://mlcommons.org/croissant/","rai":"http://mlcommons.org/croissant/RAI/","data":{"@id":"cr:data","@type":"@json"},` +
	`"dataType":{"@id":"cr:dataType","@type":"@vocab"},"dct":"http://purl.org/dc/terms/","equivalentProperty":"cr:equivalentProperty","examples":{"@id":"cr:examples","@type":"@json"},` +
	`"extract":"cr:extract","field":"cr:field","fileProperty":"cr:fileProperty","fileObject":"cr:fileObject","fileSet":"cr:fileSet","format":"cr:format",` +
	`"includes":"cr:includes","isLiveDataset":"cr:isLiveDataset","jsonPath":"cr:jsonPath","key":"cr:key","md5":"cr:md5","parentField":"cr:parentField",` +
	`"path":"cr:path","recordSet":"cr:recordSet","references":"cr:references","regex":"cr:regex","repeated":"cr:repeated","replace":"cr:replace","samplingRate":"cr:samplingRate",` +
	`"sc":"https://schema.org/","separator":"cr:separator","source":"cr:source","subField":"cr:subField","transform":"cr:transform"}`

// parquetFormat is the media type of Parquet files. It is not the registered one, because
// the mlcroissant library reads only files of this type as Parquet.
const parquetFormat = "application/x-parquet"

// croissantTypes maps the types of columns to data types of Croissant.
var croissantTypes = map[string]string{
	"utf8": "sc:Text", "list<utf8>": "sc:Text", "bool": "sc:Boolean", "int32": "sc:Integer", "int64": "sc:Integer", "float64": "sc:Float",
	"timestamp[us, tz=UTC]": "sc:DateTime",
}

type object = map[string]any

// croissant returns a description of a version in Croissant 1.0: each file with its hash
// and, for each table, a set of files and a record set with its columns.
func croissant(m schemas.Manifest, s Stats) ([]byte, error) {
	d := object{
		"@context": json.RawMessage(croissantContext), "@type": "sc:Dataset", "conformsTo": "http://mlcommons.org/croissant/1.0",
		"name": m.Dataset, "version": m.Version, "isLiveDataset": false,
		"description": fmt.Sprintf("Debugging trajectories: %d episodes of agents over %d tasks, with every action, observation and debugger state.", s.Episodes, s.Instances),
		"citeAs":      citation(m),
		"keywords":    []string{"agent traces", "debugging", "code"},
	}
	if s.Licenses["unknown"] == 0 { // claim licenses only if all are known
		var licenses []string
		for _, l := range byCount(s.Licenses) {
			licenses = append(licenses, "https://spdx.org/licenses/"+l)
		}
		d["license"] = licenses
	}
	distribution, records := []object{}, []object{}
	tables := map[string]string{} // table -> pattern of its files
	for _, f := range m.Files {
		distribution = append(distribution, object{
			"@type": "cr:FileObject", "@id": f.Path, "name": f.Path, "contentUrl": f.Path, "contentSize": fmt.Sprintf("%d B", f.Bytes),
			"encodingFormat": mediaType(f.Path), "sha256": f.SHA256,
		})
		if f.Table != "" {
			tables[f.Table] = path.Dir(f.Path) + "/*.parquet"
		}
	}
	for _, t := range schemas.TableDocs {
		pattern := tables[t.Name]
		if pattern == "" {
			continue
		}
		set := t.Name + "-files"
		distribution = append(distribution, object{
			"@type": "cr:FileSet", "@id": set, "name": set, "encodingFormat": parquetFormat, "includes": pattern,
		})
		records = append(records, recordSet(t.At(m.Schemas[t.Name]), set))
	}
	d["distribution"], d["recordSet"] = distribution, records
	return schemas.CanonicalJSON(d)
}

// recordSet describes the columns of a table. files is the ID of the set of its files.
func recordSet(t schemas.TableDoc, files string) object {
	var fields, key []object
	for _, c := range t.Columns {
		about := c.Meaning
		if c.Unit != "" {
			about += " (" + c.Unit + ")"
		}
		f := object{
			"@type": "cr:Field", "@id": t.Name + "/" + c.Name, "name": c.Name, "description": about,
			"dataType": croissantTypes[c.Type], "source": object{"fileSet": object{"@id": files}, "extract": object{"column": c.Name}},
		}
		if c.Type == "list<utf8>" {
			f["repeated"] = true
		}
		fields = append(fields, f)
	}
	for name := range strings.SplitSeq(t.Key, ", ") {
		key = append(key, object{"@id": t.Name + "/" + name})
	}
	return object{"@type": "cr:RecordSet", "@id": t.Name, "name": t.Name, "description": t.About, "key": key, "field": fields}
}

func mediaType(file string) string {
	return cmp.Or(map[string]string{
		".parquet": parquetFormat, ".json": "application/json", ".md": "text/markdown", ".svg": "image/svg+xml",
	}[path.Ext(file)], "application/octet-stream")
}

// citation returns a BibTeX entry without author and year, which tracesmith does not know.
func citation(m schemas.Manifest) string {
	safe := strings.NewReplacer("{", "", "}", "", "\\", "", "%", "")
	return fmt.Sprintf("@misc{tracesmith-%s,\n  title = {%s: debugging trajectories},\n  version = {%s},\n  note = {Dataset, made with tracesmith %s}\n}",
		m.Version, safe.Replace(m.Dataset), m.Version, safe.Replace(m.Producer.Version))
}
