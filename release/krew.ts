import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { archiveName as archive, folder, platform, root, version } from './archive.ts';
import { krewManifest } from './krew-manifest.ts';

/** `make krew`: the Krew manifest of the archive that `make sea` built. BASE_URL is where the release keeps its archives. */
const baseUrl = process.env['BASE_URL'];
if (baseUrl === undefined || !URL.canParse(baseUrl)) {
  throw new Error('BASE_URL is not a URL; set it to where the release keeps its archives');
}
const sha256 = createHash('sha256')
  .update(readFileSync(join(folder, archive)))
  .digest('hex');
const target = join(root, 'dist/krew');
mkdirSync(target, { recursive: true });
writeFileSync(
  join(target, 'drawbridge.yaml'),
  stringify(krewManifest({ version, baseUrl, archive, platform, sha256 })),
);
