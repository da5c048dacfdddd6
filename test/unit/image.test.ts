import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unreachableKubeconfig } from '../support/unreachable-kubeconfig.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const lines = readFileSync(join(root, 'Dockerfile'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'));
const last = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')));
const argumentOf = (instruction: string): string =>
  last.find((line) => line.startsWith(`${instruction} `))?.slice(instruction.length + 1) ?? '';

describe('the image', () => {
  it('is built without install scripts of packages', () => assert.ok(lines.includes('RUN npm ci --ignore-scripts')));

  it('has no shell and does not run as root', () => {
    const name = /^\$\{(\w+)\}$/.exec(argumentOf('FROM'))?.[1];
    const image = lines.find((line) => line.startsWith(`ARG ${name}=`));
    assert.match(image ?? '', /=gcr\.io\/distroless\/nodejs\d+-\w+:nonroot$/);
    assert.equal(argumentOf('USER'), '65532:65532');
    assert.ok(!last.some((line) => line.startsWith('RUN ')));
  });

  it('can be built on base images that are pinned by digest', () => {
    const images = lines.filter((line) => line.startsWith('FROM ')).map((line) => line.split(' ')[1] ?? '');
    assert.equal(images.length, 2);
    for (const image of images) assert.match(image, /^\$\{(BUILD|RUNTIME)_IMAGE\}$/);
  });

  it('contains the program and its thread, which run without other files', async function () {
    this.timeout(60_000);
    const files = last.filter((line) => line.startsWith('COPY ')).map((line) => line.split(' ').slice(1));
    assert.deepEqual(
      files.map(([from, source = '']) => [from, basename(source)]),
      [
        ['--from=build', 'drawbridge.js'],
        ['--from=build', 'health-thread.mjs'],
        ['--from=build', 'client.cjs'],
        ['--from=build', 's3-sink.mjs'],
        ['--from=build', 'email.mjs'],
      ],
    );
    const [node, program = ''] = JSON.parse(argumentOf('ENTRYPOINT')) as string[];
    assert.deepEqual([node, program], ['/nodejs/bin/node', files[0]?.[2]]);

    // For the inventory, the chart adds a Node flag.
    const deployment = readFileSync(join(root, 'charts/drawbridge/templates/deployment.yaml'), 'utf8');
    const [, command = ''] = /^ +command: \[(.*)\]$/m.exec(deployment) ?? [];
    const [chartNode, flag = '', chartProgram] = command.split(', ');
    assert.deepEqual([chartNode, chartProgram], [node, program]);

    const folder = mkdtempSync(join(tmpdir(), 'drawbridge-image-'));
    try {
      for (const [, source = '', target = ''] of files) {
        const built = join(root, 'dist', basename(source));
        if (!existsSync(built)) throw new Error(`${built} is missing: run npm run build`);
        copyFileSync(built, join(folder, target));
      }
      writeFileSync(join(folder, 'kubeconfig'), unreachableKubeconfig);
      const flags = ['--features=binding', '--kubeconfig=kubeconfig', '--health-port=0', '--metrics-port=0'];
      const child = spawn(process.execPath, [flag, join(folder, program), 'serve', ...flags], {
        cwd: folder,
        env: {},
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      let log = '';
      for await (const chunk of child.stderr) {
        log += chunk;
        if (log.includes('"message":"serving"')) child.kill('SIGKILL');
      }
      assert.match(log, /"message":"serving".*"health":[1-9]/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
