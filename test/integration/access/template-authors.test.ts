import assert from 'node:assert/strict';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import { until } from '../../../sandbox/wait.ts';
import { accessTemplate, role, targetOf } from '../../support/access-manifests.ts';
import {
  conditionOf,
  execRequest,
  type Manifest,
  podRequest,
  type StoredRequest,
} from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Person } from '../../support/person.ts';

const template = (kind: string, name: string, spec: object = {}): Manifest =>
  accessTemplate(kind, name, { ...targetOf('payments'), ...spec });
const podTemplate = (name: string, spec: object = {}): Manifest => template('PodAccessTemplate', name, spec);
const execTemplate = (name: string, spec: object = {}): Manifest => template('ExecAccessTemplate', name, spec);

interface Rule {
  readonly apiGroups: string[];
  readonly resources: string[];
  readonly verbs: string[];
}
const writesTemplates: Rule = {
  apiGroups: ['crds.wizardofoz.co'],
  resources: ['podaccesstemplates', 'execaccesstemplates'],
  verbs: ['get', 'list', 'create', 'update', 'patch', 'delete'],
};
const core = (resource: string, ...verbs: string[]): Rule => ({ apiGroups: [''], resources: [resource], verbs });
const sees = core('pods', 'get', 'list', 'watch');
const execs = core('pods/exec', 'get', 'create');
const creates = core('pods', 'create');

describe('a template grants', () => {
  let stage: AccessStage;
  /** A user with the permissions that templates grant, until a test removes them. */
  let erin: Person;
  /** A user who may write templates, without permissions that each test chooses. */
  let mallory: Person;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    erin = await Person.of(stage.plane, 'erin', ['owners']);
    mallory = await Person.of(stage.plane, 'mallory', ['editors']);
    await stage.kubectl('create', 'rolebinding', 'owners', '--role=owners', '--group=owners');
    await stage.kubectl('create', 'rolebinding', 'editors', '--role=editors', '--group=editors');
    await holds('owners', writesTemplates, sees, execs, creates);
  });

  after(() => stage?.close());

  /** Resolves once the API server, which lags, observes exactly these permissions. */
  const holds = async (name: 'owners' | 'editors', ...rules: Rule[]): Promise<void> => {
    await stage.apply(role(name, ...rules));
    const person = name === 'owners' ? erin : mallory;
    const calls = [writesTemplates, sees, execs, creates].flatMap(({ apiGroups, resources, verbs }) =>
      resources.flatMap((resource) => verbs.map((verb) => ({ group: apiGroups[0] ?? '', resource, verb }))),
    );
    const observed = async (): Promise<boolean> => {
      const answers = calls.map(async ({ group, resource, verb }) => {
        const held = rules.some((rule) => rule.resources.includes(resource) && rule.verbs.includes(verb));
        const [plural = '', subresource = ''] = resource.split('/');
        const { namespace } = stage;
        return (await person.may({ namespace, group, resource: plural, subresource, verb })) === held;
      });
      return (await Promise.all(answers)).every(Boolean);
    };
    await until(`${name} to hold their permissions`, observed, { timeoutMs: 30_000 });
  };

  const create = (person: Pick<Person, 'call'>, manifest: Manifest): Promise<ApiAnswer> =>
    person.call('POST', stage.urlOf(manifest.kind), manifest);
  const createOk = async (person: Pick<Person, 'call'>, manifest: Manifest): Promise<StoredRequest> => {
    const { status, body } = await create(person, manifest);
    assert.equal(status, 201, JSON.stringify(body));
    return body as StoredRequest;
  };
  const patch = (person: Pick<Person, 'call'>, { kind, metadata }: Manifest, change: object): Promise<ApiAnswer> =>
    person.call('PATCH', stage.urlOf(kind, metadata.name), change);
  const refused = ({ status, body }: ApiAnswer, message: RegExp): void => {
    assert.equal(status, 403, JSON.stringify(body));
    assert.match((body as { message: string }).message, message);
  };
  const authorOf = async ({ kind, metadata }: Manifest): Promise<unknown> => {
    const stored = await stage.read(kind, metadata.name ?? '');
    return (stored?.spec?.['author'] as { username?: string } | undefined)?.username;
  };
  /** Resolves once the webhook denies a request for the template, with its message. */
  const refusalThrough = (templateName: string): Promise<string> =>
    stage.answered(403, stage.alice, podRequest('through', { templateName }));

  describe('nothing to groups that Kubernetes assigns:', () => {
    for (const group of ['system:authenticated', 'system:masters', 'system:serviceaccounts:payments']) {
      it(group, async () => {
        const approvals = { all: [{ name: 'peer', groups: [group] }] };
        for (const accessConfig of [{ allowedGroups: ['devs', group] }, { allowedGroups: ['devs'], approvals }]) {
          refused(await create(stage.plane, podTemplate('everybody', { accessConfig })), /InvalidTemplate/);
        }
      });
    }
  });

  describe('nothing that its author lacks:', () => {
    const lacks: [string, Manifest, Rule[], RegExp][] = [
      ['to exec', execTemplate('grab'), [sees], /"mallory" may not get pods\/exec, create pods\/exec in namespace/],
      [
        'to exec as newer API servers check it',
        execTemplate('grab'),
        [sees, core('pods/exec', 'get')],
        /not create pods\/exec/,
      ],
      ['to see pods', execTemplate('grab'), [execs], /not get pods, list pods, watch pods in namespace/],
      ['to create pods', podTemplate('grab'), [sees, execs], /may not create pods in namespace/],
    ];
    for (const [title, manifest, rules, message] of lacks) {
      it(title, async () => {
        await holds('editors', writesTemplates, ...rules);
        refused(await create(mallory, manifest), message);
      });
    }

    it('not even by changing the template of another author, or by claiming to be that author', async () => {
      const manifest = podTemplate('of-erin');
      await createOk(erin, manifest);
      const author = { username: 'erin', groups: ['owners'], time: '2026-11-21T09:00:00Z' };
      refused(await create(mallory, podTemplate('grab', { author })), /AuthorLacksRights: .*"mallory"/);
      refused(
        await patch(mallory, manifest, { spec: { accessConfig: { allowedGroups: ['editors'] } } }),
        /AuthorLacksRights/,
      );
      refused(await patch(mallory, manifest, { spec: { author } }), /AuthorLacksRights/);
      assert.equal((await patch(mallory, manifest, { metadata: { labels: { team: 'x' } } })).status, 200);
      assert.equal(await authorOf(manifest), 'erin');
    });

    it('but everything that its author has', async () => {
      await createOk(erin, execTemplate('shell'));
      await stage.templateReady('PodAccessTemplate', 'of-erin');
      await stage.templateReady('ExecAccessTemplate', 'shell');
      const asked = [
        podRequest('to-a-pod', { templateName: 'of-erin', duration: '10m' }),
        execRequest('to-a-shell', { templateName: 'shell', duration: '10m' }),
      ];
      await Promise.all(asked.map((manifest) => stage.createReady(stage.alice, manifest)));
    });

    it('and checks each permission once, however often its rules repeat it', async () => {
      const since = stage.plane.auditLog.mark();
      const rule = { apiGroups: ['', ''], resources: Array(4).fill('pods'), verbs: Array(8).fill('get') };
      const accessConfig = { allowedGroups: ['devs'], rules: Array(8).fill(rule) };
      await createOk(erin, execTemplate('repeats', { accessConfig }));
      await stage.templateReady('ExecAccessTemplate', 'repeats');
      const asked = stage.plane.auditLog
        .calls({ user: stage.server.installation.serverUser, since })
        .filter(({ resource }) => resource === 'subjectaccessreviews').length;
      // The webhook checks once, the leader checks once, and checks of other templates may be due at the same time.
      assert.ok(asked <= 4 * 6, `checked ${asked} times`);
    });

    it('and checks no permission of the author during a grant', async () => {
      await stage.restart();
      await stage.templateReady('PodAccessTemplate', 'of-erin');
      const reviews = (since: number): number =>
        stage.plane.auditLog
          .calls({ user: stage.server.installation.serverUser, since })
          .filter(({ resource }) => resource === 'subjectaccessreviews').length;
      // The server also checks authors of other templates from time to time.
      const counts: number[] = [];
      for (const name of ['first', 'second', 'third']) {
        const since = stage.plane.auditLog.mark();
        await stage.createReady(stage.alice, podRequest(name, { templateName: 'of-erin', duration: '10m' }));
        counts.push(reviews(since));
      }
      assert.ok(counts.includes(0), counts.join());
    });
  });

  describe('nothing more', () => {
    it('after its author has lost the permissions, until the author has them again', async () => {
      await holds('owners', writesTemplates, sees, creates);
      await stage.restart();
      const stored = await stage.templateReady('PodAccessTemplate', 'of-erin', false);
      assert.equal(conditionOf(stored, 'AuthorHoldsRights')?.reason, 'AuthorLacksRights');
      const refusal = await refusalThrough('of-erin');
      assert.match(refusal, /"erin" may not get pods\/exec, create pods\/exec/);
      assert.match(refusal, /: ask someone who holds all of its permissions to update it, for example: kubectl patch /);
      assert.doesNotMatch(refusal, /[Aa]sk the author/);
      await holds('owners', writesTemplates, sees, execs, creates);
      await stage.restart();
      await stage.templateReady('PodAccessTemplate', 'of-erin');
      await stage.answered(201, stage.alice, podRequest('through', { templateName: 'of-erin' }));
    });
  });
});
