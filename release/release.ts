import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commitSeconds, folder, git, layouts, pack, platformOf, root, version } from './archive.ts';
import { packChart } from './chart.ts';
import { blobOf, LayoutWriter, manifestOf, sha256Of } from './layout.ts';
import { provenance } from './provenance.ts';
import { sbom } from './sbom.ts';

// `make release`: all files of a release in dist/release, and the layouts that `make publish` copies into the registry.
//
//   dist/sea, dist/npm, dist/krew ──> archives of the client, Krew manifest ┐
//   dist/oci/image-ARCH ──> dist/oci/image ──> image.json                   ├─> provenance.json ─> SHA256SUMS
//   charts, CHANGELOG.md ──> dist/oci/chart ──> chart.json                  ┘

const target = join(root, 'dist/release');
const inTarget = (name: string): string => join(target, name);
const { REGISTRY: registry = '', BASE_URL: url = '' } = process.env;
if (registry === '' || !URL.canParse(url))
  throw new Error('set REGISTRY to a host with a path, and BASE_URL to where the release keeps its files');
const changed = git('status', '--porcelain');
if (changed !== '') throw new Error(`a release is built of a commit; these files differ from it:\n${changed}`);
const commit = git('rev-parse', 'HEAD');

rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });

const archives = readdirSync(folder).filter((name) => platformOf(name) !== undefined);
for (const name of archives) copyFileSync(join(folder, name), inTarget(name));
copyFileSync(join(root, 'dist/krew/drawbridge.yaml'), inTarget('drawbridge.yaml'));
// Not by npm pack, which keeps the permissions of the files. Archives of npm have one folder, package.
const client = inTarget(`drawbridge-client-${version}.tgz`);
pack(client, join(root, 'dist'), '--transform=s,^npm,package,', 'npm');

const bases = joinImages();
const chart = packChart(inTarget(`drawbridge-${version}.tgz`), { image: `${registry}/drawbridge`, url });
for (const [name, layout] of [
  ['image.json', join(layouts, 'image')],
  ['chart.json', chart],
] as const)
  writeFileSync(inTarget(name), blobOf(layout, manifestOf(layout)));
writeFileSync(inTarget('sbom.spdx.json'), sbom(commitSeconds()));

const { GITHUB_SERVER_URL: forge, GITHUB_REPOSITORY: name, GITHUB_WORKFLOW_REF: workflow } = process.env;
const statement = provenance({
  commit,
  version,
  repository: forge && name && `${forge}/${name}`,
  builder: forge && workflow ? `${forge}/${workflow}` : 'https://drawbridge.dev/local-build/v1',
  parameters: { REGISTRY: registry, BASE_URL: url },
  lock: sha256Of(readFileSync(join(root, 'package-lock.json'))),
  bases,
  files: sums(),
});
writeFileSync(inTarget('provenance.json'), `${JSON.stringify(statement, undefined, 2)}\n`);
const lines = Object.entries(sums()).map(([file, hash]) => `${hash}  ${file}\n`);
writeFileSync(inTarget('SHA256SUMS'), lines.join(''));

/** The hash of each file so far. */
function sums(): Record<string, string> {
  return Object.fromEntries(
    readdirSync(target)
      .sort()
      .map((file) => [file, sha256Of(readFileSync(inTarget(file)))]),
  );
}

/** Writes dist/oci/image, an index of the images of all platforms. Returns the digests of their base images, by name. */
function joinImages(): Record<string, string> {
  const platforms = archives.flatMap((archive) => platformOf(archive) ?? []).filter(({ os }) => os === 'linux');
  const index = new LayoutWriter(join(layouts, 'image'));
  const found: Record<string, string> = {};
  const manifests = platforms.map(({ os, arch }) => {
    const layout = join(layouts, `image-${arch}`);
    const descriptor = manifestOf(layout);
    const { config, annotations = {} } = JSON.parse(blobOf(layout, descriptor).toString());
    const built = JSON.parse(blobOf(layout, config).toString()).config.Labels['org.opencontainers.image.revision'];
    if (built !== commit) throw new Error(`${layout} is of ${built}, not of ${commit}; run make image`);
    const base = annotations['org.opencontainers.image.base.name'];
    if (base) found[`${base} ${os}/${arch}`] = annotations['org.opencontainers.image.base.digest'];
    index.addAll(layout);
    return { ...descriptor, platform: { os, architecture: arch } };
  });
  const mediaType = 'application/vnd.oci.image.index.v1+json';
  index.finish(index.add(mediaType, { schemaVersion: 2, mediaType, manifests }));
  return found;
}
