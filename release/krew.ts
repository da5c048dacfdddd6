import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { folder, platformOf, root, version } from './archive.ts';
import { krewManifest } from './krew-manifest.ts';
import { sha256Of } from './layout.ts';

/** `make krew`: the Krew manifest of the archive that `make sea` built. BASE_URL is where the release keeps its archives. */
const baseUrl = process.env['BASE_URL'];
if (baseUrl === undefined || !URL.canParse(baseUrl)) {
  throw new Error('BASE_URL is not a URL; set it to where the release keeps its archives');
}
// Besides the archive of this platform, those that were built elsewhere and copied there.
const archives = readdirSync(folder).flatMap((name) => {
  const platform = platformOf(name);
  return platform === undefined ? [] : [{ name, platform, sha256: sha256Of(readFileSync(join(folder, name))) }];
});
const target = join(root, 'dist/krew');
mkdirSync(target, { recursive: true });
writeFileSync(join(target, 'drawbridge.yaml'), stringify(krewManifest({ version, baseUrl, archives })));
