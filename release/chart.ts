import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import pkg from '../package.json' with { type: 'json' };
import { commitSeconds, git, layouts, pack, root, version } from './archive.ts';
import { type Crd, releasedChart, releasedValues } from './chart-metadata.ts';
import { LayoutWriter } from './layout.ts';

const source = 'charts/drawbridge';
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

/** Packs the chart of the commit as `helm package` would, but with the same bytes each time. Returns the layout that Helm pulls. */
export function packChart(archive: string, { image, url }: { image: string; url: string }): string {
  const folder = mkdtempSync(join(root, 'dist/chart-'));
  try {
    for (const file of git('ls-files', source).split('\n')) {
      const target = join(folder, file.slice('charts/'.length));
      mkdirSync(dirname(target), { recursive: true });
      copyFileSync(join(root, file), target);
    }
    const crds = ['crds', 'inventory-crds'].flatMap((name) =>
      readdirSync(join(root, source, 'files', name)).map(
        (file) => parse(read(`${source}/files/${name}/${file}`)) as Crd,
      ),
    );
    const facts = { version, image, url, license: pkg.license, changelog: read('CHANGELOG.md'), crds };
    const chart = releasedChart(read(`${source}/Chart.yaml`), facts);
    writeFileSync(join(folder, 'drawbridge/Chart.yaml'), chart);
    writeFileSync(join(folder, 'drawbridge/values.yaml'), releasedValues(read(`${source}/values.yaml`), image));
    pack(archive, folder, 'drawbridge');
    return layoutOf(archive, parse(chart) as Record<string, unknown>);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** As `helm push` would store it, but with the time of the commit. */
function layoutOf(archive: string, chart: Record<string, unknown>): string {
  const layout = new LayoutWriter(join(layouts, 'chart'));
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = {
    schemaVersion: 2,
    mediaType,
    config: layout.add('application/vnd.cncf.helm.config.v1+json', chart),
    layers: [layout.add('application/vnd.cncf.helm.chart.content.v1.tar+gzip', readFileSync(archive))],
    annotations: {
      'org.opencontainers.image.created': new Date(commitSeconds() * 1000).toISOString(),
      'org.opencontainers.image.description': chart['description'],
      'org.opencontainers.image.title': chart['name'],
      'org.opencontainers.image.version': chart['version'],
    },
  };
  layout.finish(layout.add(mediaType, manifest));
  return layout.folder;
}
