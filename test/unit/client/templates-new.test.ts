import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { explain } from '../../../src/access/policy/policy.ts';
import { type TemplateInput, templatePolicy, templateWarnings } from '../../../src/access/policy/template-policy.ts';
import { accessOfTemplate } from '../../../src/api/access/kinds.ts';
import type { TemplateKind } from '../../../src/api/access/names.ts';
import { readBySchema } from '../../../src/api/schema/read.ts';
import { loadManifests } from '../../../src/kube/yaml.ts';
import { celRefusals } from '../../support/cel-rules.ts';
import { type ClientRun, ScriptedCluster } from '../../support/scripted-cluster.ts';
import { alice, paths, reviewOf, World } from '../admission/support.ts';
import { withoutCalls } from './objects.ts';

interface Template {
  readonly kind: TemplateKind;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: TemplateInput['spec'];
}

/** Fields that reading by the schema has dropped. */
function unknownIn(given: unknown, read: unknown): string[] {
  if (typeof given !== 'object' || given === null) return [];
  return Object.entries(given).flatMap(([name, value]) => {
    const found = (read as Record<string, unknown>)[name];
    return found === undefined ? [name] : unknownIn(value, found);
  });
}

describe('drawbridge templates new', () => {
  const ran = withoutCalls();
  const run = (...argv: string[]): Promise<ClientRun> => ran('templates', 'new', ...argv);
  const printed = async (...argv: string[]): Promise<Template> => {
    const { code, stdout, stderr } = await run(...argv);
    assert.equal(code, 0, stderr);
    // YAML 1.1 and 1.2 read it alike.
    assert.deepEqual(parse(stdout), loadManifests(stdout)[0]);
    return parse(stdout) as Template;
  };
  /** What schema, CEL rules, rule book, and advice say against it. */
  const faultsOf = ({ kind, metadata, spec }: Template): unknown[] => {
    const schema = accessOfTemplate(kind).template.structural.spec;
    const read = readBySchema<TemplateInput['spec']>(schema, spec, 'spec');
    if (!read.ok) return [...read.errors];
    // As the comment of allow says, an administrator must permit it.
    const grantable = ['pods/log', 'pods/portforward'].map((name) => ({
      apiGroups: [''],
      resources: [name],
      resourceNames: [],
      verbs: ['get', 'create'],
    }));
    const input: TemplateInput = { kind, namespace: 'payments', name: metadata.name, spec: read.value, grantable };
    const failed = explain(templatePolicy, input).filter(({ verdict }) => verdict !== 'pass');
    return [...unknownIn(spec, read.value), ...celRefusals(schema, read.value), ...failed, ...templateWarnings(input)];
  };

  it('is also template new', async () => assert.deepEqual(await ran('template', 'new'), await run()));

  const kinds: readonly TemplateKind[] = ['PodAccessTemplate', 'ExecAccessTemplate'];
  for (const kind of kinds) {
    it(`prints a valid ${kind}, without advice`, async () => {
      const template = await printed('--kind', kind);
      assert.equal(template.kind, kind);
      assert.deepEqual(faultsOf(template), []);
    });

    it(`prints options of ${kind} that are valid, too`, async () => {
      const { stdout } = await run('--kind', kind);
      const options = stdout.match(/^ +#\w+/gm) ?? [];
      assert.ok(options.length >= 3);
      const template = parse(stdout.replaceAll(/^( +)#(?=\w)/gm, '$1')) as Template;
      for (const option of options) assert.ok(Object.hasOwn(template.spec.accessConfig, option.replace(/^ +#/, '')));
      assert.deepEqual(faultsOf(template), []);
    });
  }

  /** What drawbridge check says of it, with the webhook in this process. */
  const checked = async (kind: TemplateKind, text: string, world: World): Promise<ClientRun> => {
    const directory = mkdtempSync(join(tmpdir(), 'drawbridge-new-'));
    const file = join(directory, 'template.yaml');
    writeFileSync(file, text);
    const path = kind === 'PodAccessTemplate' ? paths.podTemplate : paths.execTemplate;
    const author = { ...alice, time: '2026-11-21T09:00:00Z' };
    const webhook = await ScriptedCluster.open({}, ({ method, body }, answer) => {
      if (method !== 'POST') return false;
      const { metadata, spec } = body as { metadata: { name: string }; spec: object };
      const object = { ...(body as object), spec: { ...spec, author } };
      const review = reviewOf(`${kind.toLowerCase()}s`, 'CREATE', { name: metadata.name, object, dryRun: true });
      void world.review(path, review).then(({ allowed, warnings = [], status }) => {
        const header = warnings.map((text) => `299 - ${JSON.stringify(text)}`).join(', ');
        answer.json(allowed ? 201 : 403, allowed ? object : { kind: 'Status', ...status }, { warning: header });
      });
      return true;
    });
    const found = await webhook.run(['check', '-f', file]);
    await webhook.close();
    rmSync(directory, { recursive: true });
    return found;
  };
  for (const kind of kinds)
    it(`prints a ${kind} that passes drawbridge check`, async () => {
      const { code, stdout, stderr } = await checked(kind, (await run('--kind', kind)).stdout, new World());
      assert.equal(code, 0, `${stdout}${stderr}`);
      assert.match(stdout, / +pass +\d\d rules /);
      assert.doesNotMatch(stdout, / (fail|note) /);
    });

  it('says which line of an ExecAccessTemplate to remove without the gateway', async () => {
    const world = new World();
    world.gatewayViolation = { code: 'GatewayUnavailable', message: 'no gateway', field: 'spec', status: 404 };
    const { stdout } = await run('--kind', 'ExecAccessTemplate');
    assert.match(stdout, /# The gateway \(features\.gateway .*remove this line:\n.*\n +session: {via: Gateway}$/m);
    assert.equal((await checked('ExecAccessTemplate', stdout, world)).code, 3);
    const without = await checked('ExecAccessTemplate', stdout.replace(/^ +session: .*\n/m, ''), world);
    assert.equal(without.code, 0, `${without.stdout}${without.stderr}`);
  });

  it('is a PodAccessTemplate that needs approvals by default', async () => {
    const { kind, metadata, spec } = await printed();
    assert.deepEqual([kind, metadata], ['PodAccessTemplate', { name: 'my-app-shell' }]);
    assert.deepEqual(spec.accessConfig.approvals, { all: [{ name: 'peer', groups: ['my-team'] }] });
  });

  it('reaches a running pod only through the gateway', async () => {
    const { metadata, spec } = await printed('--kind', 'ExecAccessTemplate', '--workload', 'statefulset/db');
    assert.equal(metadata.name, 'db-exec');
    assert.deepEqual(spec.accessConfig.session, { via: 'Gateway' });
  });

  const given: readonly (readonly [
    argv: readonly string[],
    metadata: object,
    target: object,
    groups: readonly string[],
  ])[] = [
    [
      ['shell', '--workload', 'Rollout/shop', '--group', 'devs', '--group', 'oidc:sre', '-n', 'payments'],
      { name: 'shell', namespace: 'payments' },
      { apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout', name: 'shop' },
      ['devs', 'oidc:sre'],
    ],
    [
      ['--workload', 'daemonset/no', '--group', 'on', '--group', '#42', '--group', 'a: [b'],
      { name: 'no-shell' },
      { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'no' },
      ['on', '#42', 'a: [b'],
    ],
  ];
  for (const [argv, metadata, target, groups] of given) {
    it(`takes names as they are: ${argv.join(' ')}`, async () => {
      const template = await printed(...argv);
      assert.deepEqual(template.metadata, metadata);
      assert.deepEqual(template.spec.controllerTargetRef, target);
      assert.deepEqual(template.spec.accessConfig.allowedGroups, groups);
      assert.deepEqual(faultsOf(template), []);
    });
  }

  const wrong: readonly (readonly [argv: readonly string[], message: RegExp])[] = [
    [['--kind', 'Template'], /--kind is "Template"; it must be PodAccessTemplate or ExecAccessTemplate; see /],
    [['--workload', 'payments'], /--workload is "payments"; write KIND\/NAME, with one of the kinds Deployment, /],
    [['--workload', 'job/payments'], /--workload is "job\/payments"; write KIND\/NAME/],
    [['--workload', 'deployment/A'], /--workload is "deployment\/A"; write KIND\/NAME/],
    [['Shell'], /"Shell" cannot be the name of a template; see drawbridge templates new --help$/m],
  ];
  for (const [argv, message] of wrong) {
    it(`says what is wrong with: ${argv.join(' ')}`, async () => {
      const { code, stdout, stderr } = await run(...argv);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, message);
    });
  }
});
