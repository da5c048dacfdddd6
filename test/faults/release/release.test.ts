import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { basename, dirname, join } from 'node:path';
import { parse } from 'yaml';
import pkg from '../../../package.json' with { type: 'json' };
import lock from '../../../package-lock.json' with { type: 'json' };
import { blobOf, LayoutWriter, manifestOf } from '../../../release/layout.ts';
import { ensureBinaries } from '../../../sandbox/build/binaries.ts';
import { run } from '../../../sandbox/build/run.ts';
import { checkedOutFiles, checkout } from '../../../sandbox/node/images/dockerfile.ts';
import { baseImage, writeLocalImage } from '../../../sandbox/node/images/local.ts';
import { portOf } from '../../../sandbox/ports.ts';
import { scriptOf } from '../../support/page-commands.ts';
import { Registry } from '../../support/registry.ts';
import { shown } from '../../support/shown-output.ts';

const { version } = pkg;

describe('a release', function () {
  this.timeout(600_000);
  let folder: string;
  let registry: Registry;
  let files: Server;
  let env: NodeJS.ProcessEnv;

  /** Runs a command of bash in a folder. */
  const bash = (cwd: string, script: string): { status: number | null; output: string } => {
    const { status, stdout, stderr } = spawnSync('bash', ['-c', `set -eo pipefail; ${script}`], {
      cwd: join(folder, cwd),
      encoding: 'utf8',
      env,
    });
    return { status, output: `${stdout}${stderr}` };
  };
  const ok = (cwd: string, script: string): string => {
    const { status, output } = bash(cwd, script);
    assert.equal(status, 0, `${script}: ${output}`);
    return output;
  };
  const read = (path: string): string => readFileSync(join(folder, path), 'utf8');
  const json = (path: string) => JSON.parse(read(path));
  const make = (target: string): string => `make -o node_modules ${target}`;

  /** A clone with all files of this checkout in one commit, the same each time. */
  const clone = async (name: string): Promise<void> => {
    for (const file of await checkedOutFiles()) {
      mkdirSync(dirname(join(folder, name, file)), { recursive: true });
      cpSync(join(checkout, file), join(folder, name, file), { verbatimSymlinks: true });
    }
    execFileSync('cp', ['-al', join(checkout, 'node_modules'), join(folder, name)]);
    ok(name, 'git init --quiet && git add --all && git commit --quiet --message release');
  };

  before(async () => {
    // In this checkout, because links to files of node_modules must stay on one file system.
    mkdirSync(join(checkout, 'dist'), { recursive: true });
    folder = mkdtempSync(join(checkout, 'dist/release-test-'));
    registry = await Registry.start(join(folder, 'registry'));
    const { helm } = await ensureBinaries();
    // Where users download the files, with the certificate of the registry.
    const [cert, key] = ['tls.crt', 'tls.key'].map((name) => readFileSync(join(folder, 'registry', name)));
    files = createServer({ cert, key }, ({ url = '' }, answer) => {
      answer.end(readFileSync(join(folder, 'one/dist/release', basename(url))));
    }).listen(0, 'localhost');
    await once(files, 'listening');
    const base = join(folder, 'base.tar');
    await writeLocalImage(base, folder, baseImage);
    const person = { NAME: 'test', EMAIL: 'test@example.org', DATE: '2026-01-02T03:04:05Z' };
    const people = ['AUTHOR', 'COMMITTER'].flatMap((role) =>
      Object.entries(person).map(([key, value]) => [`GIT_${role}_${key}`, value]),
    );
    env = {
      ...process.env,
      ...Object.fromEntries(people),
      PATH: `${dirname(process.execPath)}:${dirname(helm)}:${process.env['PATH']}`,
      HELM_CACHE_HOME: join(folder, 'helm'),
      SSL_CERT_FILE: join(folder, 'registry/ca.crt'),
      REGISTRY: `${registry.host}/team`,
      BASE_URL: `https://localhost:${portOf(files)}/v1`,
      KREW_ROOT: join(folder, 'krew'),
      BUILD_IMAGE: `docker-archive:${base}`,
      RUNTIME_IMAGE: `docker-archive:${base}`,
    };
    for (const name of ['one', 'two']) await clone(name);
    ok('one', make('release'));
    ok('two', `umask 077; TZ=Asia/Tokyo ${make('release')}`);
    ok('one', make('publish'));
  });
  after(async () => {
    files?.close();
    await registry?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('has the same bytes if it is built again, in another folder, later', () => {
    const sums = read('one/dist/release/SHA256SUMS');
    assert.equal(read('two/dist/release/SHA256SUMS'), sums);
    assert.deepEqual(
      sums.match(/(?<= {2}).+/g)?.map((name) => name.replace(/linux-\w+/, 'PLATFORM')),
      [
        'chart.json',
        `drawbridge-${version}-PLATFORM.tar.gz`,
        `drawbridge-${version}.tgz`,
        `drawbridge-client-${version}.tgz`,
        'drawbridge.yaml',
        'image.json',
        'provenance.json',
        'sbom.spdx.json',
      ],
    );
  });

  it('is not built of files that are not committed', () => {
    writeFileSync(join(folder, 'two/src/more.ts'), '');
    const { status, output } = bash('two', 'node --import tsx release/release.ts');
    rmSync(join(folder, 'two/src/more.ts'));
    assert.notEqual(status, 0);
    assert.match(output, /src\/more\.ts/);
  });

  it('lists in its SBOM the packages of the lock file that are not for development, with their hashes', () => {
    const sorted = (packages: string[]): string[] => [...new Set(packages)].sort();
    const hex = (integrity = ''): string => Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');
    const locked = Object.entries(
      lock.packages as Record<string, { version: string; dev?: boolean; integrity?: string }>,
    )
      .filter(([path, { dev }]) => path !== '' && dev !== true)
      .map(([path, { version: at, integrity }]) => `${path.split('node_modules/').at(-1)} ${at} ${hex(integrity)}`);
    const listed = json('one/dist/release/sbom.spdx.json').packages.flatMap(
      ({
        name,
        versionInfo,
        checksums,
      }: {
        name: string;
        versionInfo: string;
        checksums?: { checksumValue: string }[];
      }) => (name === pkg.name ? [] : [`${name} ${versionInfo} ${checksums?.[0]?.checksumValue}`]),
    );
    assert.ok(locked.length > 50);
    assert.deepEqual(sorted(listed), sorted(locked));
  });

  it('names in its provenance the commit, the base image, and each other file with its checksum', () => {
    const { subject, predicate } = json('one/dist/release/provenance.json');
    const lines = subject.map(
      ({ name, digest }: { name: string; digest: { sha256: string } }) => `${digest.sha256}  ${name}`,
    );
    const sums = read('one/dist/release/SHA256SUMS').trim().split('\n');
    assert.deepEqual(
      lines,
      sums.filter((line) => !line.endsWith(' provenance.json')),
    );
    const [source, , base] = predicate.buildDefinition.resolvedDependencies;
    assert.equal(source.digest.gitCommit, ok('one', 'git rev-parse HEAD').trim());
    assert.match(base.name, /^localhost\/base:1 linux\//);
  });

  it('has a chart that Helm installs, with its version, the published image, and annotations for Artifact Hub', () => {
    const chart = `oci://${env['REGISTRY']}/charts/drawbridge --version ${version}`;
    const metadata = parse(ok('.', `helm show chart ${chart} 2>/dev/null`));
    assert.deepEqual([metadata.version, metadata.appVersion], [version, version]);
    assert.match(metadata.annotations['artifacthub.io/changes'], /^- description: /);
    assert.ok(
      ok('.', `helm template drawbridge ${chart}`).includes(`image: ${env['REGISTRY']}/drawbridge:${version}\n`),
    );
  });

  it('has a client that npm installs without another package', () => {
    ok('.', `npm install --offline --prefix npm ./one/dist/release/drawbridge-client-${version}.tgz`);
    assert.equal(ok('.', 'npm/node_modules/.bin/kubectl-drawbridge version --client'), `drawbridge ${version}\n`);
  });

  it('has a client that Krew installs from an index', async () => {
    mkdirSync(join(folder, 'index/plugins'), { recursive: true });
    cpSync(join(folder, 'one/dist/release/drawbridge.yaml'), join(folder, 'index/plugins/drawbridge.yaml'));
    ok('index', 'git init --quiet && git add --all && git commit --quiet --message index');
    // With the environment of this process, which may fetch modules.
    const build = ['build', '-o', join(folder, 'krew-program'), 'sigs.k8s.io/krew/cmd/krew'];
    const built = await run('go', build, { cwd: join(checkout, 'lint') });
    assert.equal(built.code, 0, built.stderr);
    // Not `ok`, because this process serves the archive meanwhile.
    const install = '../krew-program index add local "$PWD" && ../krew-program install local/drawbridge';
    const options = { cwd: join(folder, 'index'), env };
    const { code, stdout, stderr } = await run('bash', ['-ec', install], options);
    assert.equal(code, 0, `${stdout}${stderr}`);
    assert.equal(ok('.', 'krew/bin/kubectl-drawbridge version --client'), `drawbridge ${version}\n`);
  });

  it('is signed by the digests that the registry has', () => {
    mkdirSync(join(folder, 'bin'));
    writeFileSync(join(folder, 'bin/cosign'), '#!/bin/sh\necho "cosign $*"\n', { mode: 0o755 });
    const asked = ok('one', `PATH=${join(folder, 'bin')}:$PATH ${make('sign')}`);
    const digest = (name: string): string =>
      ok('.', `skopeo inspect --raw docker://${env['REGISTRY']}/${name}:${version} | sha256sum`).slice(0, 64);
    const [image, chart] = ['drawbridge', 'charts/drawbridge'].map(
      (name) => `${env['REGISTRY']}/${name}@sha256:${digest(name)}`,
    );
    assert.ok(asked.includes(`cosign sign --yes ${image} ${chart}\n`), asked);
    assert.ok(asked.includes(`sbom.spdx.json ${image}\n`), asked);
  });

  it('that is published again writes nothing', () => {
    const before = registry.times();
    assert.equal(ok('one', make('publish')).match(/was published before/g)?.length, 2);
    assert.deepEqual(registry.times(), before);
  });

  const others: readonly (readonly [artifact: string, change: () => void])[] = [
    [
      'image',
      () => {
        const layout = join(folder, 'two/dist/oci/image');
        const manifest = manifestOf(layout);
        const index = { ...JSON.parse(blobOf(layout, manifest).toString()), annotations: { other: 'yes' } };
        const other = new LayoutWriter(join(folder, 'other'));
        other.addAll(layout);
        other.finish(other.add(manifest.mediaType, index));
        cpSync(other.folder, layout, { recursive: true });
      },
    ],
    ['chart', () => void ok('two', 'BASE_URL=https://other.example node --import tsx release/release.ts')],
  ];
  for (const [artifact, change] of others) {
    it(`with another ${artifact} of the same version is refused before anything is written`, () => {
      change();
      const before = registry.times();
      const { status, output } = bash('two', make('publish'));
      assert.notEqual(status, 0);
      assert.match(
        output,
        new RegExp(`drawbridge:${version} is sha256:\\w+, not sha256:\\w+; a version never changes`),
      );
      assert.deepEqual(registry.times(), before);
    });
  }

  it('is not published if the registry does not answer', () => {
    const { status, output } = bash('two', `REGISTRY=localhost:1/team ${make('publish')}`);
    assert.notEqual(status, 0);
    assert.match(output, /cannot read localhost:1\/team\/drawbridge/);
  });

  describe('that is verified as the page says', () => {
    const page = 'docs/tasks/verify-a-release.md';
    const commands = [scriptOf(page, 'sha256sum'), scriptOf(page, 'image.json'), scriptOf(page, 'chart.json')];
    const verify = (): { status: number | null; output: string } => {
      rmSync(join(folder, 'downloaded'), { recursive: true, force: true });
      cpSync(join(folder, 'one/dist/release'), join(folder, 'downloaded'), { recursive: true });
      return bash('downloaded', commands.join('\n').replaceAll('localhost', env['REGISTRY'] ?? ''));
    };
    const blobs = () => {
      const at = (layout: string, name: string) =>
        json(`one/dist/oci/${layout}/blobs/sha256/${name.replace('sha256:', '')}`);
      const image = at('image', manifestOf(join(folder, 'one/dist/oci/image')).digest).manifests[0].digest;
      const chart = manifestOf(join(folder, 'one/dist/oci/chart')).digest;
      return {
        layer: at('image', image).layers[1].digest,
        config: at('image', image).config.digest,
        image,
        chart: at('chart', chart).layers[0].digest,
      };
    };

    it('has no fault', () => {
      const { status, output } = verify();
      assert.equal(status, 0, output);
      assert.match(output, shown('tasks/verify-a-release.md', 'chart.json: OK'));
    });

    const wrongDigest = /digest.*match|match.*digest/i;
    const changes: readonly (readonly [what: string, file: () => string, shown: RegExp])[] = [
      ['a layer of the image', () => registry.blob(blobs().layer), wrongDigest],
      ['the configuration of the image', () => registry.blob(blobs().config), wrongDigest],
      ['the manifest of the image', () => registry.blob(blobs().image), wrongDigest],
      ['the chart', () => registry.blob(blobs().chart), wrongDigest],
      ['the SBOM', () => join(folder, 'one/dist/release/sbom.spdx.json'), /sbom\.spdx\.json: FAILED/],
      ['the provenance', () => join(folder, 'one/dist/release/provenance.json'), /provenance\.json: FAILED/],
    ];
    for (const [what, fileOf, shows] of changes) {
      it(`shows a changed byte in ${what}`, () => {
        const file = fileOf();
        const content = readFileSync(file);
        const other = Buffer.from(content);
        other[content.length >> 1] = (other[content.length >> 1] ?? 0) ^ 1;
        writeFileSync(file, other);
        const { status, output } = verify();
        writeFileSync(file, content);
        assert.notEqual(status, 0);
        assert.match(output, shows);
      });
    }

    it('has no fault afterwards', () => assert.equal(verify().status, 0));
  });
});
