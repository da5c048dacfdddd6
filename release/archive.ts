import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import pkg from '../package.json' with { type: 'json' };

export const root = join(import.meta.dirname, '..');
/** Where the executable and its archive are. */
export const folder = join(root, 'dist/sea');
/** Where the layouts of image and chart are, in the format of OCI. */
export const layouts = join(root, 'dist/oci');
export const { version } = pkg;

/** This platform, as Krew names it. */
export const platform = {
  os: process.platform === 'win32' ? 'windows' : process.platform,
  arch: process.arch === 'x64' ? 'amd64' : process.arch,
} as const;

const archivePrefix = `drawbridge-${version}-`;
export const archiveName = `${archivePrefix}${platform.os}-${platform.arch}.tar.gz`;

/** The platform of an archive of this version, by its name. */
export function platformOf(name: string): { readonly os: string; readonly arch: string } | undefined {
  const [, os, arch] =
    /^(\w+)-(\w+)\.tar\.gz$/.exec(name.startsWith(archivePrefix) ? name.slice(archivePrefix.length) : '') ?? [];
  return os === undefined || arch === undefined ? undefined : { os, arch };
}

export const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();

/** The time of the commit in seconds, which all that is built of it has. */
export const commitSeconds = (): number => Number(process.env['SOURCE_DATE_EPOCH'] ?? git('log', '-1', '--format=%ct'));

/** Packs files of a folder into an archive with the same bytes each time. */
export function pack(archive: string, from: string, ...names: string[]): void {
  const same = ['--sort=name', `--mtime=@${commitSeconds()}`, '--owner=0', '--group=0', '--numeric-owner'];
  const flags = [...same, '--mode=u=rwX,go=rX', '--use-compress-program=gzip -n'];
  execFileSync('tar', [...flags, '-C', from, '-cf', archive, ...names]);
}
