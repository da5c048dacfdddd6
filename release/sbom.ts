import { execFileSync } from 'node:child_process';
import lock from '../package-lock.json' with { type: 'json' };
import { root } from './archive.ts';
import { sha256Of } from './layout.ts';

interface Spdx {
  packages: readonly { readonly SPDXID: string; readonly name: string; readonly versionInfo: string }[];
  relationships: readonly { readonly spdxElementId: string; readonly relatedSpdxElement: string }[];
  documentNamespace: string;
  readonly creationInfo: { created: string };
}

/** The npm packages of the programs, in the format SPDX. npm writes the time and a random name, which this replaces. */
export function sbom(seconds: number): string {
  const flags = ['--sbom-format', 'spdx', '--package-lock-only'];
  const document = JSON.parse(execFileSync('npm', ['sbom', ...flags], { cwd: root, encoding: 'utf8' })) as Spdx;
  // Not --omit=dev: npm 11 then also omits what both the programs and a tool need, such as js-yaml.
  document.packages = document.packages.filter(({ name, versionInfo }) => needed.has(`${name}@${versionInfo}`));
  const ids = new Set(['SPDXRef-DOCUMENT', ...document.packages.map(({ SPDXID }) => SPDXID)]);
  document.relationships = document.relationships.filter(
    ({ spdxElementId, relatedSpdxElement }) => ids.has(spdxElementId) && ids.has(relatedSpdxElement),
  );
  document.creationInfo.created = new Date(seconds * 1000).toISOString().replace('.000', '');
  document.documentNamespace = `https://drawbridge.dev/sbom/${sha256Of(JSON.stringify(document.packages))}`;
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

type Locked = Readonly<Record<string, { readonly name?: string; readonly version: string; readonly dev?: boolean }>>;

/** What the lock file has that is not only for development, and drawbridge itself. */
const needed = new Set(
  Object.entries(lock.packages as Locked).flatMap(([path, { name, version, dev }]) =>
    dev === true ? [] : [`${name ?? path.split('node_modules/').at(-1)}@${version}`],
  ),
);
