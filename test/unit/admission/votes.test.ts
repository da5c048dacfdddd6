import assert from 'node:assert/strict';
import { voteName } from '../../../src/access/policy/vote-policy.ts';
import { requestLabel } from '../../../src/api/access/names.ts';
import { own } from '../../../src/kit/json-value.ts';
import { approvals } from '../../support/access-objects.ts';
import { allowed, patched, reviewOf, World } from './support.ts';

const carol = { username: 'carol', uid: 'u-3', groups: ['devs', 'system:authenticated'] };
const robot = { username: 'system:serviceaccount:ops:oncall', uid: '', groups: [] };

/** A vote as people write it. */
const vote = (spec: Record<string, unknown> = {}, metadata: Record<string, unknown> = {}) => ({
  apiVersion: 'access.drawbridge.dev/v1alpha1',
  kind: 'AccessVote',
  metadata: { generateName: 'vote-', namespace: 'payments', ...metadata },
  spec: { request: { kind: 'PodAccessRequest', name: 'debug' }, about: 'Access', decision: 'Approve', ...spec },
});

describe('votes', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
    world.request = {
      found: true,
      uid: 'r-1',
      templateName: 'payments-shell',
      requester: { username: 'alice', uid: 'u-1' },
      emergency: false,
      extensions: 0,
      decidedExtensions: 0,
      ended: false,
    };
    world.configure({ approvals });
  });
  const change = (fields: Partial<Extract<World['request'], { found: true }>>) => () => {
    assert.ok(world.request.found);
    world.request = { ...world.request, ...fields };
  };
  const mutate = (object: unknown, fields: Record<string, unknown> = {}) =>
    world.review(
      '/mutate-access-drawbridge-dev-v1alpha1-accessvote',
      reviewOf('accessvotes', 'CREATE', { object, userInfo: carol, name: '', ...fields }),
    );
  const validate = (object: unknown, fields: Record<string, unknown> = {}) =>
    world.review(
      '/validate-access-drawbridge-dev-v1alpha1-accessvote',
      reviewOf('accessvotes', 'CREATE', { object, userInfo: carol, name: '', ...fields }),
    );
  const attestedVote = (spec: Record<string, unknown> = {}, voter: object = carol) =>
    vote({
      request: { kind: 'PodAccessRequest', name: 'debug', uid: 'r-1' },
      template: { kind: 'PodAccessTemplate', name: 'payments-shell', uid: 't-1', generation: 1 },
      voter: { ...voter, time: '2026-11-21T09:00:00Z' },
      ...spec,
    });

  describe('when they are created', () => {
    for (const dryRun of [false, true]) {
      it(`are denied if the user has voted so already${dryRun ? ', also in a dry run' : ''}`, async () => {
        world.votedAtMs = Date.parse('2026-11-21T08:00:00Z');
        const { status } = await mutate(vote(), { dryRun });
        assert.match(
          status?.message ?? '',
          /^AlreadyVoted: carol has .* at 2026-11-21T08:00:00Z, with spec\.about Access and spec\.decision Approve; such a vote counts once, and cannot be changed; to deny the access, or to end it if it is open, vote with spec\.decision Deny$/,
        );
        assert.deepEqual([status?.code, status?.reason], [409, 'AlreadyExists']);
        const denial = await mutate(vote({ decision: 'Deny' }), { dryRun });
        assert.match(denial.status?.message ?? '', /and spec\.decision Deny; .*; no second vote is needed$/);
      });
    }

    it('are told to name the extension that waits, if the user has approved the access', async () => {
      world.configure({ approvals, extension: { times: 2, total: '2h', approvals: 'Same' } });
      change({ isGranted: true, extensions: 2, decidedExtensions: 1 })();
      world.votedAtMs = Date.parse('2026-11-21T08:00:00Z');
      const messageOf = async (about: string) => (await mutate(vote({ about }))).status?.message ?? '';
      assert.match(await messageOf('Access'), /; to vote on what waits, set spec\.about to Extension-2; to deny/);
      assert.match(await messageOf('Extension-2'), /cannot be changed; while Extension-2 waits, you can still /);
    });

    for (const about of ['Access', 'Extension-1']) {
      it(`get no advice to vote again if the request has ended: ${about}`, async () => {
        change({ ended: true })();
        world.votedAtMs = Date.parse('2026-11-21T08:00:00Z');
        const { status } = await mutate(vote({ about }));
        assert.match(status?.message ?? '', /^AlreadyVoted: .*; the request has ended, so it needs no vote$/);
      });
    }

    it('get the voter, the uid of the request, and the version of the template, also in a dry run', async () => {
      const object = vote({ max: '20m', reason: 'go' });
      const spec = {
        request: { kind: 'PodAccessRequest', name: 'debug', uid: 'r-1' },
        template: { kind: 'PodAccessTemplate', name: 'payments-shell', uid: 't-1', generation: 1 },
        about: 'Access',
        decision: 'Approve',
        max: '20m',
        reason: 'go',
      } as const;
      const name = voteName('r-1', 'carol', spec);
      const voter = { ...carol, time: '2026-11-21T09:00:00Z' };
      const stored = patched(object, await mutate(object));
      assert.deepEqual(stored['spec'], { ...spec, voter });
      assert.deepEqual(stored['metadata'], {
        generateName: 'vote-',
        namespace: 'payments',
        name,
        labels: { [requestLabel]: 'r-1' },
        ownerReferences: [
          { apiVersion: 'crds.wizardofoz.co/v1alpha1', kind: 'PodAccessRequest', name: 'debug', uid: 'r-1' },
        ],
      });
      assert.deepEqual(patched(object, await mutate(object, { dryRun: true })), stored);
    });

    it('lose a forged voter and template, and foreign finalizers and owners', async () => {
      const object = vote(
        { voter: { username: 'root', time: 'x' }, template: { name: 'other' } },
        { name: 'mine', finalizers: ['keep'], ownerReferences: [{ uid: 'x' }] },
      );
      const stored = patched(object, await mutate(object));
      const { voter, template } = stored['spec'] as { voter: { username: string }; template: { name: string } };
      assert.equal(voter.username, 'carol');
      assert.equal(template.name, 'payments-shell');
      const { name, finalizers } = stored['metadata'] as { name: string; finalizers?: string[] };
      assert.notEqual(name, 'mine');
      assert.equal(finalizers, undefined);
    });

    const versions: readonly (readonly [title: string, spec: Record<string, unknown>, generation: number])[] = [
      ['keep the version of the template that their voter saw', {}, 7],
      ['get the present version if they deny', { decision: 'Deny' }, 1],
      ['get the present version if they review an emergency', { about: 'Review' }, 1],
    ];
    for (const [title, spec, generation] of versions) {
      it(title, async () => {
        change({ emergency: true })();
        const object = vote({
          ...spec,
          template: { kind: 'ExecAccessTemplate', name: 'x', uid: 't-1', generation: 7 },
        });
        const stored = patched(object, await mutate(object));
        const template = { kind: 'PodAccessTemplate', name: 'payments-shell', uid: 't-1', generation };
        assert.deepEqual((stored['spec'] as { template: object }).template, template);
      });
    }

    const missing = (request: World['request']): void => {
      world.request = request;
    };
    for (const [what, arrange, spec, message] of [
      [
        'on a request that does not exist',
        () => missing({ found: false }),
        {},
        /^RequestNotFound: PodAccessRequest "debug" does not exist in namespace "payments"; to list those that do: kubectl get podaccessrequests -n payments$/,
      ],
      [
        'about a review that is no longer owed',
        () => missing({ found: false }),
        { about: 'Review' },
        /^RequestNotFound: PodAccessRequest "debug" does not exist in namespace "payments", and no emergency of that name waits for a review \(it may have been reviewed already\); to list/,
      ],
      [
        'on a request of the other kind',
        () => missing({ found: false, otherKind: 'ExecAccessRequest' }),
        {},
        /^RequestNotFound: .*; the request of this name is of kind ExecAccessRequest; set spec\.request\.kind to ExecAccessRequest$/,
      ],
      [
        'on a request that was created anew',
        () => {},
        { request: { kind: 'PodAccessRequest', name: 'debug', uid: 'r-0' } },
        /^RequestNotFound: .*"debug" with uid "r-0" does not exist/,
      ],
      [
        'on a request whose template is gone',
        () => world.dropTemplate(),
        {},
        /^TemplateNotFound: .*template payments-shell of the request no longer exists/,
      ],
    ] as const) {
      it(`${what} are denied with what is wrong, also in a dry run, before the admission policies run`, async () => {
        arrange();
        const denial = await mutate(vote(spec));
        assert.match(denial.status?.message ?? '', message);
        assert.deepEqual((await mutate(vote(spec), { dryRun: true })).status, denial.status);
        assert.equal(world.lines[0]?.request, 'debug');
      });
    }

    it('are denied without a user', async () => {
      const nameless = { ...carol, username: '' };
      assert.match((await mutate(vote(), { userInfo: nameless })).status?.message ?? '', /^MissingIdentity: /);
    });
  });

  it('have one name for each person, question, and decision of a request', () => {
    const nameOf = (uid: string, user: string, about: string, decision: 'Approve' | 'Deny', generation = 1): string =>
      voteName(uid, user, {
        about,
        decision,
        template: { kind: 'PodAccessTemplate', name: 'payments-shell', uid: 't-1', generation },
      });
    const names = [
      nameOf('r-1', 'carol', 'Access', 'Approve'),
      nameOf('r-1', 'carol', 'Access', 'Deny'),
      nameOf('r-1', 'carol', 'Extension-1', 'Approve'),
      nameOf('r-1', 'dave', 'Access', 'Approve'),
      nameOf('r-2', 'carol', 'Access', 'Approve'),
      // The edit of a template voids approvals, so the same person can approve again. A denial stays.
      nameOf('r-1', 'carol', 'Access', 'Approve', 2),
    ];
    assert.equal(nameOf('r-1', 'carol', 'Access', 'Deny', 2), names[1]);
    const unique = new Set(names);
    assert.equal(unique.size, names.length);
    for (const name of unique) assert.match(name, /^vote-[0-9a-f]{32}$/);
  });

  it('of another person who may approve are allowed, with an audit line that names the decision', async () => {
    await allowed(validate(attestedVote({ reason: 'ticket checked' })));
    assert.deepEqual(world.asked, [
      'PodAccessRequest payments/debug',
      'PodAccessTemplate payments/payments-shell',
      'approve carol PodAccessTemplate payments/payments-shell',
    ]);
    const [line] = world.lines;
    assert.equal(line?.request, 'debug');
    assert.equal(line?.message, 'Approve Access');
    assert.equal(line?.reason, 'ticket checked');
    assert.equal(line?.templateGeneration, 1);
  });

  it('have an audit line with the limit, and the person for whom a program votes', async () => {
    await allowed(validate(attestedVote({ max: '20m', onBehalfOf: 'frank' })));
    assert.equal(world.lines[0]?.message, 'Approve Access, for at most 20m, on behalf of frank');
  });

  it('about an emergency whose request was deleted have no owner, so that they are not garbage-collected', async () => {
    emergencyIsDeleted();
    const object = vote({ about: 'Review' }, { ownerReferences: [{ uid: 'other' }] });
    const stored = patched(object, await mutate(object));
    assert.equal(own(stored['metadata'], 'ownerReferences'), undefined);
    const { template, request } = stored['spec'] as { template?: unknown; request?: unknown };
    assert.deepEqual(template, { kind: 'PodAccessTemplate', name: 'payments-shell', uid: 'deleted', generation: 0 });
    assert.deepEqual(request, { kind: 'PodAccessRequest', name: 'debug', uid: 'r-1' });
  });

  it('are denied if the audit journal fails and they approve', async () => {
    world.journalWorks = false;
    assert.equal((await validate(attestedVote())).allowed, false);
    assert.equal((await validate(attestedVote({ decision: 'Deny' }))).allowed, true);
  });

  const emergencyIsDeleted = (): void => {
    change({ emergency: true, ended: true, isDeleted: true })();
    world.dropTemplate();
  };
  const extensionsAre = (extensions: number, decidedExtensions: number) => () => {
    world.configure({ approvals, extension: { times: 2, total: '2h', approvals: 'Same' } });
    change({ extensions, decidedExtensions })();
  };
  const lackVerb = (): void => {
    world.approves = false;
  };
  const requester = { username: 'alice', uid: 'u-1', groups: [] };
  const onTemplate = (uid: string, generation: number) => ({
    template: { kind: 'PodAccessTemplate', name: 'payments-shell', uid, generation },
  });
  const review = { about: 'Review' };
  const deny = { decision: 'Deny' };
  interface Case {
    readonly arrange?: () => void;
    /** Of the vote. */
    readonly spec?: Record<string, unknown>;
    readonly voter?: object;
    /** Default: the voter. */
    readonly caller?: object;
  }
  const answerTo = ({ arrange, spec, voter = carol, caller = voter }: Case) => {
    arrange?.();
    return validate(attestedVote(spec, voter), { userInfo: caller });
  };

  const denied: [what: string, code: string, of: Case][] = [
    ['of the requester', 'SelfApproval', { voter: requester }],
    ['of the requester under a second name', 'SelfApproval', { voter: { ...carol, uid: 'u-1' } }],
    ['for a request without a requester', 'SelfApproval', { arrange: change({ requester: undefined }) }],
    ['without the verb approve', 'NotApprover', { arrange: lackVerb }],
    [
      'that approve, of a person in none of the groups that must approve,',
      'NotApprover',
      {
        arrange: () =>
          world.configure({ approvals: { ...approvals, all: [{ name: 'security', groups: ['secops'] }] } }),
      },
    ],
    ['of a ServiceAccount', 'NotApprover', { voter: robot }],
    ['in the name of another', 'MissingIdentity', { voter: { ...carol, username: 'dave' }, caller: carol }],
    ['on a request that was created anew', 'RequestNotFound', { arrange: change({ uid: 'r-2' }) }],
    ['on a request that has ended', 'NothingToDecide', { arrange: change({ ended: true }) }],
    ['for another generation of the template', 'TemplateChanged', { spec: onTemplate('t-1', 2) }],
    ['for another template of the name', 'TemplateChanged', { spec: onTemplate('t-2', 1) }],
    ['that nothing waits for', 'NothingToDecide', { arrange: () => world.configure({}) }],
    ['that approve access that is granted', 'NothingToDecide', { arrange: change({ isGranted: true }) }],
    ['about an extension not asked for', 'NothingToDecide', { spec: { about: 'Extension-1' } }],
    [
      'about an extension that is decided',
      'NothingToDecide',
      { arrange: extensionsAre(1, 1), spec: { about: 'Extension-1' } },
    ],
    ['about the review of what was no emergency', 'NothingToDecide', { spec: review }],
    [
      'about the review of an emergency, without the verb approve on a template that is gone',
      'NotApprover',
      {
        arrange: () => {
          emergencyIsDeleted();
          lackVerb();
        },
        spec: review,
      },
    ],
    [
      'about the review of an emergency, of a ServiceAccount, on a template that is gone',
      'NotApprover',
      { arrange: emergencyIsDeleted, spec: review, voter: robot },
    ],
    [
      'about the review of one’s own emergency',
      'SelfApproval',
      { arrange: change({ emergency: true, ended: true, isDeleted: true }), spec: review, voter: requester },
    ],
    ['about anything else', 'InvalidObject', { spec: { about: 'Extension-0' } }],
    ['for no duration', 'InvalidDuration', { spec: { max: 'short' } }],
    ['for less than a second', 'InvalidDuration', { spec: { max: '999ms' } }],
  ];
  for (const [what, code, of] of denied) {
    it(`${what} are denied with ${code}`, async () => {
      const { status } = await answerTo(of);
      assert.equal(status?.message?.split(':')[0], code, status?.message);
      assert.equal(world.lines[0]?.code, code);
    });
  }

  const counting: [what: string, of: Case][] = [
    ['that deny, on a template without approvals', { arrange: () => world.configure({}), spec: deny }],
    [
      'of a ServiceAccount, if the template counts them',
      { arrange: () => world.configure({ approvals: { ...approvals, serviceAccounts: true } }), voter: robot },
    ],
    [
      'of others than the requester, who has no uid',
      { arrange: change({ requester: { username: 'alice', uid: '' } }), voter: { ...carol, uid: '' } },
    ],
    ['about an extension that waits', { arrange: extensionsAre(2, 0), spec: { about: 'Extension-2' } }],
    ['that deny granted access', { arrange: change({ isGranted: true }), spec: deny }],
    ['about the review of an emergency', { arrange: change({ emergency: true }), spec: review }],
    [
      'about the review of an emergency that has ended',
      { arrange: change({ emergency: true, ended: true }), spec: review },
    ],
    [
      'about the review of an emergency whose request and template are gone',
      { arrange: emergencyIsDeleted, spec: review },
    ],
  ];
  for (const [what, of] of counting) it(`${what} are allowed`, async () => void (await allowed(answerTo(of))));
});
