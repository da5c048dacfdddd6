import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildDockerfile } from '../sandbox/node/images/dockerfile.ts';
import { commitSeconds, git, layouts, platform, version } from './archive.ts';

/** `make image`: the image of the Dockerfile for this platform, as a layout of OCI. */
const { BUILD_IMAGE, RUNTIME_IMAGE } = process.env;
mkdirSync(layouts, { recursive: true });
const workspace = mkdtempSync(join(layouts, 'building-'));
try {
  const built = join(workspace, 'image');
  await buildDockerfile({
    name: `drawbridge:${version}`,
    bases: { ...(BUILD_IMAGE && { BUILD_IMAGE }), ...(RUNTIME_IMAGE && { RUNTIME_IMAGE }) },
    created: commitSeconds(),
    labels: { 'org.opencontainers.image.revision': git('rev-parse', 'HEAD') },
    target: `oci:${built}`,
    workspace,
  });
  const target = join(layouts, `image-${platform.arch}`);
  rmSync(target, { recursive: true, force: true });
  renameSync(built, target);
} finally {
  rmSync(workspace, { recursive: true, force: true });
}
