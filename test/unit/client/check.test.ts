import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { podRequestManifest, podTemplateManifest } from '../../support/access-objects.ts';
import type { Answer } from '../../support/scripted-apiserver.ts';
import { type ClientRun, ScriptedCluster } from '../../support/scripted-cluster.ts';
import { webhookDenial } from '../../support/webhook-denial.ts';

const template = JSON.stringify(podTemplateManifest());
const request = JSON.stringify(podRequestManifest());
const workload = 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: payments}\n';
const passed = '18 rules passed';
const unchecked = 'not checked api-server: whether the API server accepts the Pod; to check: store the template';
const missingTarget = 'FAIL plan: TargetNotFound: Deployment "payments" does not exist; create it';

const expanding = Array.from(
  { length: 7 },
  (_, i) => `a${i}: &a${i} [${`${i === 0 ? 1 : `*a${i - 1}`}, `.repeat(10)}]`,
);

describe('drawbridge check', () => {
  let cluster: ScriptedCluster | undefined;
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'drawbridge-check-'));
  });
  afterEach(async () => {
    rmSync(directory, { recursive: true });
    await cluster?.close();
  });

  const fileWith = (text: string, name = 'objects.yaml'): string => {
    const file = join(directory, name);
    writeFileSync(file, text);
    return file;
  };
  const withWarnings = (warnings: readonly string[]): Record<string, string> =>
    warnings.length === 0 ? {} : { warning: warnings.map((text) => `299 - ${JSON.stringify(text)}`).join(', ') };
  const checked = async (
    argv: readonly string[],
    answers: (answer: Answer) => void,
    stored: Readonly<Record<string, readonly object[]>> = {},
  ): Promise<ClientRun> => {
    cluster = await ScriptedCluster.open(stored, ({ method }, answer) => {
      if (method !== 'POST' && method !== 'PUT') return false;
      answers(answer);
      return true;
    });
    return cluster.run(['check', ...argv]);
  };
  const accepting =
    (...warnings: string[]) =>
    (answer: Answer): void =>
      answer.json(201, { metadata: { name: 'x' } }, withWarnings(warnings));
  const refusing =
    (code: number, status: object, ...warnings: string[]) =>
    (answer: Answer): void =>
      answer.json(code, { kind: 'Status', code, ...status }, withWarnings(warnings));
  const rowsOf = ({ stdout }: ClientRun): string[][] =>
    stdout
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => line.split(/ {3,}/));

  const [shell, debug] = ['PodAccessTemplate/payments-shell', 'PodAccessRequest/debug'];
  const pass = (object: string): readonly string[] => [object, 'pass', '18 rules', '-'];
  const noPermission =
    'podaccesstemplates.crds.wizardofoz.co is forbidden: User "alice" cannot create resource "podaccesstemplates" in API group "crds.wizardofoz.co" in the namespace "payments"';
  const exists = 'a request of this name exists already; to request access again, delete it first';
  const unseen = (object: string): readonly string[] => [
    object,
    'not checked',
    'no-rules',
    'the API server answers without asking drawbridge; check the webhooks: drawbridge doctor',
  ];
  const cases: readonly (readonly [
    what: string,
    text: string,
    answers: (answer: Answer) => void,
    code: number,
    rows: readonly (readonly string[])[],
  ])[] = [
    [
      'a template that passes',
      template,
      accepting(unchecked, passed),
      0,
      [[shell, 'not checked', 'api-server', 'store the template'], pass(shell)],
    ],
    [
      'advice, which fails nothing',
      template,
      accepting('spec.accessConfig.allowedGroups is empty', passed),
      0,
      [[shell, 'note', '-', 'spec.accessConfig.allowedGroups is empty'], pass(shell)],
    ],
    [
      'a template that apply would only warn about',
      template,
      accepting(missingTarget, passed),
      3,
      [[shell, 'fail', 'plan', 'TargetNotFound: Deployment "payments" does not exist; create it'], pass(shell)],
    ],
    [
      'a template that the webhook denies, once',
      template,
      refusing(403, webhookDenial(422, 'InvalidTemplate', 'no'), 'FAIL durations: InvalidTemplate: no'),
      3,
      [[shell, 'fail', 'durations', 'InvalidTemplate: no']],
    ],
    [
      'a denial without rules',
      template,
      refusing(422, webhookDenial(422, 'InvalidObject', 'spec is too large', 'spec')),
      3,
      [[shell, 'fail', 'InvalidObject', 'InvalidObject: spec is too large']],
    ],
    [
      'a field that the API server does not know',
      template,
      refusing(400, { reason: 'BadRequest', message: 'strict decoding error: unknown field "spec.x"' }),
      3,
      [[shell, 'fail', 'BadRequest', 'strict decoding error: unknown field "spec.x"']],
    ],
    [
      'a template that the caller may not create',
      template,
      refusing(403, { reason: 'Forbidden', message: noPermission }),
      1,
      [
        [
          shell,
          'not checked',
          'no-rules',
          `denied: ${noPermission}; check the name of the namespace, or ask an administrator for this permission`,
        ],
      ],
    ],
    [
      'a template that a policy refuses',
      template,
      refusing(403, {
        reason: 'Forbidden',
        message: `"x" is forbidden: ValidatingAdmissionPolicy 'x' denied request: no`,
      }),
      3,
      [[shell, 'fail', 'Forbidden', `"x" is forbidden: ValidatingAdmissionPolicy 'x' denied request: no`]],
    ],
    [
      'a request whose template needs a correction',
      request,
      accepting('PlanTooLarge: the plan is too large', passed),
      3,
      [
        [debug, 'fail', 'PlanTooLarge', 'ask the author of the template to correct this: the plan is too large'],
        pass(debug),
      ],
    ],
    [
      'a request that exists already',
      request,
      refusing(409, { reason: 'AlreadyExists', message: 'exists' }, passed),
      0,
      [pass(debug), [debug, 'note', 'exists', exists]],
    ],
    ['an object that no webhook has seen', template, accepting(), 1, [unseen(shell)]],
    [
      'an object that only a webhook of others has seen',
      template,
      accepting('Kyverno: label team is missing'),
      1,
      [[shell, 'note', '-', 'Kyverno: label team is missing'], unseen(shell)],
    ],
    [
      'a warning of others, which fails nothing',
      request,
      accepting('Kyverno: label team is missing', passed),
      0,
      [[debug, 'note', '-', 'Kyverno: label team is missing'], pass(debug)],
    ],
    [
      'a request that exists already, and that no webhook has seen',
      request,
      refusing(409, { reason: 'AlreadyExists', message: 'exists' }),
      1,
      [[debug, 'note', 'exists', exists], unseen(debug)],
    ],
    [
      'a template whose namespace does not exist',
      template,
      refusing(404, { reason: 'NotFound', message: 'namespaces "payments" not found' }),
      1,
      [[shell, 'not checked', 'no-rules', 'namespaces "payments" not found']],
    ],
    [
      'an object that others keep changing meanwhile',
      template,
      refusing(409, { reason: 'Conflict', message: 'the object has been modified' }),
      1,
      [[shell, 'not checked', 'no-rules', 'the object has been modified']],
    ],
  ];
  for (const [what, text, answers, code, rows] of cases) {
    it(`reports ${what}, and exits with ${code}`, async () => {
      const run = await checked(['-f', fileWith(text)], answers);
      assert.deepEqual([run.code, rowsOf(run)], [code, rows], run.stderr);
    });
  }

  it('stores nothing, and accepts no unknown field', async () => {
    await checked(['-f', fileWith(template)], accepting(passed));
    assert.deepEqual(
      cluster?.writes.map(({ method, query }) => [method, query.get('dryRun'), query.get('fieldValidation')]),
      [['POST', 'All', 'Strict']],
    );
  });

  it('checks the new version of a stored template as an update', async () => {
    const stored = { ...podTemplateManifest(), metadata: { name: 'payments-shell', resourceVersion: '7' } };
    await checked(['-f', fileWith(template)], accepting(passed), { podaccesstemplates: [stored] });
    const [write] = cluster?.writes ?? [];
    assert.equal(write?.method, 'PUT');
    assert.deepEqual(write?.body, {
      ...podTemplateManifest(),
      metadata: { name: 'payments-shell', namespace: 'payments', resourceVersion: '7' },
    });
  });

  it('checks a template again that the leader changed meanwhile', async () => {
    const stored = { ...podTemplateManifest(), metadata: { name: 'payments-shell', resourceVersion: '7' } };
    let calls = 0;
    const conflict = refusing(409, { reason: 'Conflict', message: 'modified' }, missingTarget);
    const run = await checked(
      ['-f', fileWith(template)],
      (answer) => (++calls === 1 ? conflict : accepting(passed))(answer),
      { podaccesstemplates: [stored] },
    );
    assert.deepEqual([run.code, rowsOf(run)], [0, [pass(shell)]]);
    const path = '/podaccesstemplates/payments-shell';
    assert.deepEqual(
      cluster?.server.requests.filter((call) => call.path.endsWith(path)).map(({ method }) => method),
      ['GET', 'PUT', 'GET', 'PUT'],
    );
  });

  it('checks each template and request of several files and Lists, after one that fails, too', async () => {
    const list = JSON.stringify({ kind: 'List', items: [podTemplateManifest(), podRequestManifest()] });
    const files = [
      fileWith(`${workload}---\n${template}\n---\n# nothing\n`, 'a.yaml'),
      fileWith(list, 'b.json'),
      fileWith(request, 'c.yaml'),
    ];
    const [first = '', ...more] = files;
    const run = await checked(['-f', first, ...more, '-o', 'json'], accepting(missingTarget));
    const { items } = JSON.parse(run.stdout) as { items: { file: string; object: string; namespace: string }[] };
    assert.deepEqual(
      items.map(({ file, object, namespace }) => [files.indexOf(file), object, namespace]),
      [
        [0, shell, 'payments'],
        [1, shell, 'payments'],
        [1, debug, 'payments'],
        [2, debug, 'payments'],
      ],
    );
    assert.deepEqual([run.code, run.stderr], [3, 'note: 1 object is no template or request: skipped\n']);
  });

  for (const kind of [
    'List',
    'PodAccessTemplateList',
    'ExecAccessTemplateList',
    'PodAccessRequestList',
    'ExecAccessRequestList',
  ])
    it(`checks each item of a ${kind}, also of one in a List`, async () => {
      const itemKind = kind === 'List' ? 'PodAccessRequest' : kind.replace('List', '');
      const { apiVersion, spec } = podRequestManifest();
      const item = { apiVersion, ...(kind === 'List' ? { kind: itemKind } : {}), metadata: { name: 'x' }, spec };
      const list = { kind, items: [item, item] };
      const file = fileWith(JSON.stringify({ kind: 'List', items: [list, list] }));
      const run = await checked(['-f', file], accepting(passed));
      assert.deepEqual([run.code, rowsOf(run).map(([object]) => object)], [0, Array(4).fill(`${itemKind}/x`)]);
    });

  const namespaces: readonly (readonly [what: string, namespace: string | undefined, found: string])[] = [
    ['its own', 'billing', 'billing'],
    ['that of -n', undefined, 'other'],
  ];
  for (const [what, namespace, found] of namespaces) {
    it(`checks an object in the namespace: ${what}`, async () => {
      const text = JSON.stringify({ kind: 'PodAccessTemplate', metadata: { name: 'x', namespace }, spec: {} });
      await checked(['-f', fileWith(text), '-n', 'other'], accepting(passed));
      assert.match(cluster?.writes[0]?.path ?? '', new RegExp(`/namespaces/${found}/podaccesstemplates$`));
    });
  }

  it('reads values as kubectl does', async () => {
    const text = 'kind: PodAccessRequest\nmetadata: {name: x}\nspec: {emergency: Off, startAt: 2026-11-22T20:00:00Z}\n';
    await checked(['-f', fileWith(text)], accepting(passed));
    const body = cluster?.writes[0]?.body as { spec: object } | undefined;
    assert.deepEqual(body?.spec, { emergency: false, startAt: '2026-11-22T20:00:00Z' });
  });

  const wrong: readonly (readonly [what: string, argv: () => string[], code: number, message: RegExp])[] = [
    ['no file', () => [], 2, /^drawbridge: -f is missing: check -f FILE\.\.\.; see drawbridge check --help$/],
    ['a file that does not exist', () => ['-f', 'nosuchfile'], 2, /^drawbridge: cannot read "nosuchfile": .*ENOENT/],
    ['files without templates and requests', () => ['-f', fileWith(workload)], 2, /have no template and no request/],
    ['a list without its kind', () => ['-f', fileWith(`---\n---\n- ${template}`)], 2, /"\S+", document 2: .* a list; /],
    ['a text', () => ['-f', fileWith('hello')], 2, /"\S+", document 1: .* a string; /],
    [
      'a List with an item that is no object',
      () => ['-f', fileWith('kind: List\nitems: [null]')],
      2,
      /"\S+", document 1: found null; /,
    ],
    [
      'aliases that expand',
      () => ['-f', fileWith(expanding.join('\n'))],
      2,
      /"\S+" is larger than 8388608 characters, /,
    ],
    ['a value that contains itself', () => ['-f', fileWith('spec: &a {x: *a}')], 2, /"\S+" is nested more than 64 /],
    ['a file above 4 MiB', () => ['-f', fileWith('#'.repeat(4 * 1024 * 1024 + 1))], 2, /is larger than 4 MiB/],
    ['a device without an end', () => ['-f', '/dev/zero'], 2, /cannot read "\/dev\/zero": it is larger than 4 MiB/],
    ['a file that is no YAML', () => ['-f', fileWith('a: [')], 3, /^drawbridge: \S+ is no valid YAML: line 1: /],
  ];
  for (const [what, argv, code, message] of wrong) {
    it(`makes no call for ${what}, and exits with ${code}`, async () => {
      const run = await checked(argv(), accepting(passed));
      assert.equal(run.code, code);
      assert.match(run.stderr.trimEnd(), message);
      assert.deepEqual(cluster?.server.requests, []);
    });
  }

  const broken: readonly (readonly [what: string, answers: (answer: Answer) => void])[] = [
    ['the server does not answer', refusing(500, { message: 'failed calling webhook: refused' })],
    ['the credentials are refused', refusing(401, { reason: 'Unauthorized' })],
    [
      'the kinds are not served',
      refusing(404, { reason: 'NotFound', message: 'the server could not find the requested resource' }),
    ],
  ];
  for (const [what, answers] of broken) {
    it(`exits with 1 and names the object if ${what}`, async () => {
      const run = await checked(['-f', fileWith(template)], answers);
      assert.deepEqual([run.code, run.stdout], [1, ''], run.stderr);
      assert.match(run.stderr, /^drawbridge: "\S+objects\.yaml", PodAccessTemplate\/payments-shell: /);
    });
  }

  it('exits with 1 for a template that the caller may not read, and checks the other objects', async () => {
    const message = noPermission.replace('create', 'get');
    cluster = await ScriptedCluster.open({}, ({ method, path }, answer) => {
      if (method === 'POST') accepting(passed)(answer);
      else if (path.includes('podaccesstemplates')) refusing(403, { reason: 'Forbidden', message })(answer);
      else return false;
      return true;
    });
    const run = await cluster.run(['check', '-f', fileWith(`${template}\n---\n${request}`)]);
    const [row = [], ...others] = rowsOf(run);
    assert.deepEqual([run.code, row.slice(0, 3), others], [1, [shell, 'not checked', 'no-rules'], [pass(debug)]]);
    assert.match(row[3] ?? '', /cannot get resource "podaccesstemplates"/);
  });

  it('shows what it found before a fault of the cluster', async () => {
    let calls = 0;
    const run = await checked(['-f', fileWith(`${template}\n---\n${template}`)], (answer) =>
      ++calls === 1 ? accepting(passed)(answer) : refusing(500, { message: 'boom' })(answer),
    );
    assert.deepEqual([run.code, rowsOf(run)], [1, [pass(shell)]]);
  });
});
