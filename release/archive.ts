import { join } from 'node:path';
import pkg from '../package.json' with { type: 'json' };

export const root = join(import.meta.dirname, '..');
/** Where the executable and its archive are. */
export const folder = join(root, 'dist/sea');
export const { version } = pkg;

/** This platform, as Krew names it. */
export const platform = {
  os: process.platform === 'win32' ? 'windows' : process.platform,
  arch: process.arch === 'x64' ? 'amd64' : process.arch,
} as const;

export const archiveName = `drawbridge-${version}-${platform.os}-${platform.arch}.tar.gz`;
