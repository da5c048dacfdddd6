import { parseDocument, stringify } from 'yaml';

const unfolded = { lineWidth: 0, flowCollectionPadding: false } as const;

export interface ChartFacts {
  readonly version: string;
  /** Without tag. */
  readonly image: string;
  readonly license: string;
  /** Where the files of the release are. */
  readonly url: string;
  /** The text of CHANGELOG.md. */
  readonly changelog: string;
  readonly crds: readonly Crd[];
}

export interface Crd {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly names: { readonly kind: string };
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: { readonly description?: string } };
    }[];
  };
}

interface Change {
  readonly kind?: string;
  readonly description: string;
}

/** The kinds of Keep a Changelog, which are those of Artifact Hub. */
const kinds = ['added', 'changed', 'deprecated', 'removed', 'fixed', 'security'];

/** The changes of a version: its list items, with the heading above them if it is a kind of change. */
export function changesOf(changelog: string, version: string): Change[] {
  const section = changelog.split(/^## /m).find((text) => text.startsWith(`[${version}]`));
  if (section === undefined) throw new Error(`CHANGELOG.md has no section [${version}]; add it`);
  return section.split(/^### /m).flatMap((part) => {
    const [heading = '', ...items] = part.split(/\n- /);
    const kind = heading.split('\n')[0]?.trim().toLowerCase() ?? '';
    return items.map((item) => ({ ...(kinds.includes(kind) && { kind }), description: plain(item) }));
  });
}

/** Markdown as one line of text: Artifact Hub shows no links or emphasis. */
const plain = (markdown: string): string =>
  (markdown.split(/\n\n|\n#/)[0] ?? '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*]/g, '')
    .replace(/\s+/g, ' ')
    .trim();

/** Chart.yaml of a release: its version is that of the program, and it has what Artifact Hub shows. */
export function releasedChart(chart: string, facts: ChartFacts): string {
  const { version, image, license, url } = facts;
  const changes = changesOf(facts.changelog, version);
  const crds = facts.crds.flatMap(({ metadata, spec }) =>
    spec.versions.map(({ name, schema }) => ({
      kind: spec.names.kind,
      version: name,
      name: metadata.name,
      displayName: spec.names.kind,
      description: plain(schema.openAPIV3Schema.description ?? spec.names.kind),
    })),
  );
  const document = parseDocument(chart);
  document.set('version', version);
  document.set('appVersion', version);
  document.set('annotations', {
    'artifacthub.io/category': 'security',
    'artifacthub.io/changes': stringify(changes, unfolded),
    'artifacthub.io/containsSecurityUpdates': String(changes.some(({ kind }) => kind === 'security')),
    'artifacthub.io/crds': stringify(crds, unfolded),
    'artifacthub.io/images': stringify([{ name: 'drawbridge', image: `${image}:${version}` }]),
    'artifacthub.io/license': license,
    'artifacthub.io/links': stringify([{ name: 'Files of this release', url }]),
    'artifacthub.io/prerelease': String(version.includes('-')),
  });
  return document.toString(unfolded);
}

/** values.yaml of a release: it names the published image. */
export function releasedValues(values: string, image: string): string {
  const document = parseDocument(values);
  document.setIn(['image', 'repository'], image);
  return document.toString(unfolded);
}
