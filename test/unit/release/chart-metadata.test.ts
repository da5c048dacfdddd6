import assert from 'node:assert/strict';
import { parse } from 'yaml';
import { changesOf, releasedChart, releasedValues } from '../../../release/chart-metadata.ts';

const changelog = `# Changelog

## [1.1.0] - 2026-03-01

### Security

- **Stops** a [hole](docs/hole.md) in
  \`exec\`. Update.

### Gateway

- Records.
- Replays.

## [1.0.0] - 2026-01-01

- The first version.
`;

describe('the changes of a version', () => {
  it('are the list items of its section as lines of text, with their kind if the heading is one', () => {
    assert.deepEqual(changesOf(changelog, '1.1.0'), [
      { kind: 'security', description: 'Stops a hole in exec. Update.' },
      { description: 'Records.' },
      { description: 'Replays.' },
    ]);
  });

  it('are also those above the first heading', () => {
    assert.deepEqual(changesOf(changelog, '1.0.0'), [{ description: 'The first version.' }]);
  });

  it('cannot be found without a section of the version', () => {
    assert.throws(() => changesOf(changelog, '2.0.0'), /no section \[2\.0\.0\]/);
  });
});

describe('the chart of a release', () => {
  const crd = {
    metadata: { name: 'doors.example.org' },
    spec: {
      names: { kind: 'Door' },
      versions: [{ name: 'v1', schema: { openAPIV3Schema: { description: 'Opens and\ncloses.' } } }],
    },
  };
  const facts = {
    image: 'registry.example/team/drawbridge',
    license: 'Apache-2.0',
    url: 'https://example.org/v1',
    changelog,
  };
  const annotationsOf = (version: string) => {
    const text = releasedChart('version: 0.0.1 # old\nappVersion: 0.0.1\n', { ...facts, version, crds: [crd] });
    const { annotations, ...chart } = parse(text);
    assert.deepEqual(chart, { version, appVersion: version });
    return (name: string) => parse(annotations[`artifacthub.io/${name}`]);
  };

  it('has the version of the program, and what Artifact Hub shows', () => {
    const annotation = annotationsOf('1.1.0');
    assert.deepEqual(annotation('images'), [{ name: 'drawbridge', image: 'registry.example/team/drawbridge:1.1.0' }]);
    assert.deepEqual(annotation('links'), [{ name: 'Files of this release', url: 'https://example.org/v1' }]);
    assert.deepEqual(annotation('crds'), [
      { kind: 'Door', version: 'v1', name: 'doors.example.org', displayName: 'Door', description: 'Opens and closes.' },
    ]);
    assert.equal(annotation('changes').length, 3);
    assert.deepEqual([annotation('license'), annotation('category')], ['Apache-2.0', 'security']);
  });

  it('says whether it is a prerelease, and whether it updates security', () => {
    const flags = (version: string) => ['prerelease', 'containsSecurityUpdates'].map(annotationsOf(version));
    assert.deepEqual(flags('1.1.0'), [false, true]);
    assert.deepEqual(flags('1.0.0'), [false, false]);
    const rc = changelog.replace('[1.0.0]', '[1.0.0-rc.1]');
    const text = releasedChart('', { ...facts, changelog: rc, version: '1.0.0-rc.1', crds: [] });
    assert.equal(parse(text).annotations['artifacthub.io/prerelease'], 'true');
  });

  it('has the published image in its values, whose comments stay', () => {
    const values = 'image:\n  # Without tag.\n  repository: drawbridge\n';
    assert.equal(releasedValues(values, facts.image), values.replace(': drawbridge', `: ${facts.image}`));
  });
});
