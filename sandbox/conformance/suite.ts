import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RealNode } from '../node/node.ts';
import { registries } from './images.ts';
import { type Outcomes, outcomes } from './reports.ts';

/** Kubernetes' end-to-end tests against one node. */
export class Suite {
  readonly #node: RealNode;
  readonly #programs: { readonly ginkgo: string; readonly 'e2e.test': string };

  constructor(node: RealNode, programs: { readonly ginkgo: string; readonly 'e2e.test': string }) {
    this.#node = node;
    this.#programs = programs;
  }

  /**
   * Runs the tests whose names match one of the expressions, several at once. `name` is that of its log, which it prints. `kubectl`: the
   * program that the tests call.
   */
  async run(name: string, focus: readonly string[], kubectl = this.#node.binaries.kubectl): Promise<Outcomes> {
    const folder = join(this.#node.directory, 'logs');
    const repositories = join(folder, 'registries.yaml');
    await writeFile(repositories, registries);
    const report = `${name}.json`;
    const log = createWriteStream(join(folder, `${name}.log`));
    const child = spawn(
      this.#programs.ginkgo,
      [
        '--procs=4',
        '--timeout=40m',
        '--no-color',
        '--silence-skips',
        `--focus=${focus.join('|')}`,
        // They need DNS or several nodes, or disturb other tests.
        '--skip=sig-network|Preemption|IssuerDiscovery|Disruptive|Slow',
        `--output-dir=${folder}`,
        `--json-report=${report}`,
        this.#programs['e2e.test'],
        '--',
        `--kubeconfig=${this.#node.adminKubeconfig}`,
        `--kubectl-path=${kubectl}`,
        '--num-nodes=1',
      ],
      { env: { ...process.env, KUBE_TEST_REPO_LIST: repositories }, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    child.stdout.pipe(log);
    child.stderr.pipe(log);
    // Fails if a test fails; the report says which.
    await once(child, 'close');
    return outcomes(await readFile(join(folder, report), 'utf8'));
  }
}
