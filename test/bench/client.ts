import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { run } from '../../sandbox/build/run.ts';
import { apiVersionOf, type Resource } from '../../src/api/object.ts';
import { requestResource, templateResource } from '../../src/client/access-requests.ts';
import { program } from '../support/client.ts';
import { inParallel } from './support/api.ts';
import { benchmarkOn, benchPlane } from './support/command.ts';
import { type Figures, numberFrom } from './support/figures.ts';

/** `drawbridge list` and `kubectl get` in turn: in a namespace without requests, and of the same N requests; and `drawbridge templates` of T templates. No server runs, so the objects stay as they are. */
const count = numberFrom('N', 500);
const templateCount = numberFrom('T', 500);

interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
}

/** A program with standard output into /dev/null, as the shell measures it. */
async function cost(command: readonly string[], env: NodeJS.ProcessEnv): Promise<Cost> {
  const script = 'TIMEFORMAT="%R %U %S"; time "$@" >/dev/null';
  const { stderr } = await run('bash', ['-c', script, 'bash', ...command], { env });
  const [real = Number.NaN, user = Number.NaN, system = Number.NaN] = stderr
    .trim()
    .split('\n')
    .slice(-1)
    .flatMap((line) => line.split(' ').map(Number));
  return { wallMs: real * 1000, cpuMs: (user + system) * 1000 };
}

/** The time until the first rows of a table are printed, ms; then the program ends because no one reads further. */
async function firstRowsMs(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const startMs = performance.now();
  const child = spawn(process.execPath, [program, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  await once(child.stdout, 'data');
  const ms = performance.now() - startMs;
  child.stdout.destroy();
  await ended;
  return ms;
}

const plane = await benchPlane();

/** Creates `many` objects in the namespace default. */
async function createMany(resource: Resource, name: string, many: number, spec: object): Promise<void> {
  const url = `/apis/${apiVersionOf(resource)}/namespaces/default/${resource.plural}`;
  await inParallel(many, async (index) => {
    const object = {
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      metadata: { name: `${name}-${index}` },
      spec,
    };
    const { status, body } = await plane.call('POST', url, object);
    if (status !== 201) throw new Error(`creating ${name}-${index}: ${status} ${JSON.stringify(body)}`);
  });
}

await benchmarkOn(
  'client',
  async ({ env }: { readonly env: NodeJS.ProcessEnv; close(): Promise<void> }): Promise<Figures> => {
    const { plural, group } = requestResource('pod');
    const ours = (namespace: string) => cost([process.execPath, program, 'list', '--everyone', '-n', namespace], env);
    const kubectl = (namespace: string) =>
      cost([plane.binaries.kubectl, 'get', `${plural}.${group}`, '-n', namespace], env);
    const [few, fewByKubectl] = [await ours('kube-public'), await kubectl('kube-public')];
    const [many, manyByKubectl] = [await ours('default'), await kubectl('default')];
    const node = await cost([process.execPath, '--eval', '0'], env);
    return {
      listMs: few.wallMs,
      overKubectl: few.wallMs / fewByKubectl.wallMs,
      moreCpuMs: few.cpuMs - fewByKubectl.cpuMs,
      cpuOverNode: few.cpuMs / node.cpuMs,
      firstRowsMs: await firstRowsMs(['list', '--everyone', '-n', 'default'], env),
      firstTemplatesMs: await firstRowsMs(['templates', '-n', 'default'], env),
      manyMs: many.wallMs,
      manyOverKubectl: many.wallMs / manyByKubectl.wallMs,
      manyMoreCpuMs: many.cpuMs - manyByKubectl.cpuMs,
    };
  },
  {
    rounds: 9,
    async open() {
      const resource = requestResource('pod');
      const controllerTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' };
      await createMany(resource, 'bench', count, { templateName: 'bench' });
      await createMany(templateResource('pod'), 'bench', templateCount, {
        accessConfig: { allowedGroups: ['devs'] },
        controllerTargetRef,
      });
      const env = { ...process.env, KUBECONFIG: plane.adminKubeconfig };
      // kubectl keeps what the API server serves; the first run is not counted.
      await plane.kubectl(['get', resource.plural, '-n', 'default']);
      return { env, close: () => Promise.resolve() };
    },
    end: () => plane.stop(),
  },
);
