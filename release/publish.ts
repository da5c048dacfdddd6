import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { layouts, version } from './archive.ts';
import { manifestOf, sha256Of } from './layout.ts';

// `make publish`: copies image and chart into the registry, as skopeo is logged in. A version never changes:
// the same content again writes nothing, and other content is refused before anything is written.

const { REGISTRY: registry = '' } = process.env;
if (registry === '') throw new Error('set REGISTRY to a host with a path');

interface Ran {
  readonly status: number | null;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}
const skopeo = (...args: string[]): Ran => {
  const ran = spawnSync('skopeo', args, { maxBuffer: 2 ** 26 });
  if (ran.error) throw new Error(`skopeo does not run: ${ran.error.message}`);
  return ran;
};
const copy = (from: string, to: string): void => {
  const { status, stderr } = skopeo('--insecure-policy', 'copy', '--quiet', '--all', '--preserve-digests', from, to);
  if (status !== 0) throw new Error(`cannot copy ${from} to ${to}: ${stderr}`);
};

/** The digest of a tag, unless the registry says that it has no such tag. */
function digestAt(reference: string): string | undefined {
  const { status, stdout, stderr } = skopeo('inspect', '--raw', `docker://${reference}`);
  if (status === 0) return `sha256:${sha256Of(stdout)}`;
  if (/manifest unknown|name unknown/.test(stderr.toString())) return undefined;
  throw new Error(`cannot read ${reference}: ${stderr}`);
}

const artifacts = [
  { layout: join(layouts, 'image'), repository: `${registry}/drawbridge` },
  { layout: join(layouts, 'chart'), repository: `${registry}/charts/drawbridge` },
].map(({ layout, repository }) => {
  const tag = `${repository}:${version}`;
  const { digest } = manifestOf(layout);
  return { layout, repository, tag, digest, present: digestAt(tag) };
});
for (const { tag, digest, present } of artifacts)
  if (present !== undefined && present !== digest)
    throw new Error(`${tag} is ${present}, not ${digest}; a version never changes: release another one`);

for (const { layout, repository, tag, digest, present } of artifacts) {
  const byDigest = `docker://${repository}@${digest}`;
  if (present === undefined) copy(`oci:${layout}`, byDigest);
  readBack(byDigest);
  // The tag comes last, so that it never names what could not be read back.
  if (present === undefined) copy(byDigest, `docker://${tag}`);
  process.stdout.write(`${tag}@${digest} ${present === undefined ? 'is published' : 'was published before'}\n`);
}

/** Reads all bytes from the registry; skopeo compares them with their digests. */
function readBack(reference: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'drawbridge-read-back-'));
  try {
    copy(reference, `oci:${folder}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
