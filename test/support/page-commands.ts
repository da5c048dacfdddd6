import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { type RunResult, run } from '../../sandbox/build/run.ts';
import type { Manifest } from '../../sandbox/chart/helm.ts';
import type { PlaneClient } from '../../sandbox/plane-client.ts';
import { program as client } from './client.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The first block of a page that contains `text`, without the indentation of a list. Of a console, only the commands. */
function blockOf(page: string, text: string, language: 'sh' | 'yaml'): string {
  const content = readFileSync(join(root, page), 'utf8').replaceAll('REGISTRY', 'localhost');
  const blocks = [...content.matchAll(/^( *)```(\w+)\n(.*?)^\1```/gms)].flatMap(([, indent, its, block = '']) => {
    const lines = block.replaceAll(new RegExp(`^${indent}`, 'gm'), '');
    if (language === 'sh' && its === 'console') return lines.replaceAll(/^(?:\$ (.*\n)|.*\n)/gm, '$1');
    return its === language ? lines : [];
  });
  const found = blocks.find((block) => block.includes(text));
  assert.ok(found !== undefined, `${page} has no ${language} block with ${text}`);
  return found;
}

/** Reads the first shell block of a page that contains `text`. */
export const scriptOf = (page: string, text = ''): string => blockOf(page, text, 'sh');

/** Reads the values of the chart in the first YAML block of a page that contains `text`. */
export const valuesOf = (page: string, text: string): Manifest['spec'] => parse(blockOf(page, text, 'yaml'));

/** The commands of such a block, each in one line. */
export function commandsOf(page: string, text = ''): string[] {
  return scriptOf(page, text)
    .replaceAll(/\\\n\s*/g, '')
    .split(/\n|&&/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** A reader of the documents: by default the administrator of a plane, with bash, kubectl, Helm, and the client, in a folder. */
export interface Reader {
  readonly plane: Pick<PlaneClient, 'binaries' | 'directory' | 'adminKubeconfig'>;
  readonly folder: string;
  readonly kubeconfig?: string;
}

/** Runs lines of a page in bash. */
export function tryAsReader({ plane, folder, kubeconfig }: Reader, lines: string): Promise<RunResult> {
  const { kubectl, helm } = plane.binaries;
  const PATH = [dirname(kubectl), dirname(helm), process.env['PATH']].join(':');
  const env = { PATH, HOME: plane.directory, KUBECONFIG: kubeconfig ?? plane.adminKubeconfig };
  const script = `drawbridge() { node ${client} "$@"; }\n${lines}`;
  return run('bash', ['--norc', '-euo', 'pipefail', '-c', script], { cwd: folder, env });
}

/** Resolves with what the reader sees, errors included; rejects if the last command fails. */
export async function runAsReader(reader: Reader, lines: string): Promise<string> {
  const { code, stdout } = await tryAsReader(reader, `exec 2>&1\n${lines}`);
  assert.equal(code, 0, `${lines}\n${stdout}`);
  return stdout;
}
