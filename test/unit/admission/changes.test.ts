import assert from 'node:assert/strict';
import { formatTime } from '../../../src/kit/clock.ts';
import { approvals as byPeer } from '../../support/access-objects.ts';
import { accessRequest, alice, allowed, paths, requester, reviewOf, World } from './support.ts';

const minute = 60_000;
const mallory = { username: 'mallory', uid: 'u-9', groups: ['devs'] };
const extension = { times: 2, total: '2h', approvals: 'None' } as const;
const approvals = { ...byPeer, claimWithin: '8h' };

describe('claims and extensions', () => {
  let world: World;
  /** Of the request before the update. */
  let approvalState: string | undefined;
  /** From now on; for the claim. */
  let leftMs: number;
  beforeEach(() => {
    world = new World();
    const startMs = world.clock.now() - 10 * minute;
    world.access = { startMs, endMs: startMs + 30 * minute, decided: 0, granted: 0, emergency: false };
    world.configure({ approvals, extension });
    approvalState = 'Claimable';
    leftMs = 1000;
  });
  const stored = (spec: Record<string, unknown> = {}) => accessRequest({ requester, ...spec }, { uid: 'r-1' });
  const reviewed = (path: string, spec: object, oldSpec: object, fields: object) => {
    const due = formatTime(world.clock.now() + leftMs);
    const status = approvalState === undefined ? undefined : { approval: { state: approvalState, due } };
    const [object, oldObject] = [stored({ ...oldSpec, ...spec }), { ...stored({ ...oldSpec }), status }];
    return world.review(path, reviewOf('podaccessrequests', 'UPDATE', { object, oldObject, ...fields }));
  };

  describe('are validated, and', () => {
    const validated = (spec: object, oldSpec: object = {}, fields: object = {}) =>
      reviewed(paths.validatePod, spec, oldSpec, fields);
    const asked = [{ by: '30m' }];
    const closed = (): void => {
      world.access = undefined;
    };

    it('a claim is allowed, with an audit line that names it', async () => {
      await allowed(validated({ claimed: true }));
      assert.equal(world.lines[0]?.message, 'claims the access');
    });

    for (const [state, remedy] of [
      [undefined, 'wait for that state, or create a new request if this one has ended'],
      ['Pending', 'wait for that state'],
      ['Scheduled', 'wait for that state'],
      ['Approved', 'this request needs no claim'],
      ['Denied', 'create a new request'],
      ['TimedOut', 'create a new request'],
    ] as const) {
      it(`a claim is denied with WrongState while the state is ${state}`, async () => {
        approvalState = state;
        const answer = await validated({ claimed: true });
        const message = answer.status?.message ?? '';
        assert.match(message, /^WrongState: .*; access can be claimed only while the state is Claimable; /);
        assert.equal(message.split('; ').at(-1), remedy);
      });
    }

    it('a claim is denied with WrongState at the end of its time, although the leader has not written that', async () => {
      leftMs = 0;
      const answer = await validated({ claimed: true });
      assert.match(answer.status?.message ?? '', /^WrongState: the state of the approval is TimedOut; /);
    });

    it('an extension is allowed, with an audit line that names the reason', async () => {
      const answer = await allowed(validated({ extensions: [{ by: '30m', reason: 'INC-42' }] }));
      assert.deepEqual(answer.warnings ?? [], []);
      assert.equal(world.lines[0]?.message, 'asks to extend the access by 30m');
      assert.equal(world.lines[0]?.reason, 'INC-42');
    });

    it('an extension that will be shorter is allowed with a warning', async () => {
      const answer = await allowed(validated({ extensions: [{ by: '3h' }] }));
      assert.deepEqual(answer.warnings, [
        'spec.extensions[0].by: requested 3h; access ends at 2026-11-21T10:50:00Z, because the template allows 2h in total',
      ]);
    });

    it('an extension that the deadline of the pod will shorten is allowed with a warning', async () => {
      assert.ok(world.access);
      world.access = { ...world.access, podEndMs: world.access.startMs + 60 * minute };
      const answer = await validated({ extensions: [{ by: '3h' }] });
      assert.deepEqual(answer.warnings, [
        'spec.extensions[0].by: requested 3h; access ends at 2026-11-21T09:50:00Z, because the pod stops then',
      ]);
    });

    it('an extension that needs approvals is said to be shorter if it is approved', async () => {
      world.configure({ approvals, extension: { ...extension, approvals: 'Same' } });
      const answer = await validated({ extensions: [{ by: '3h' }] });
      assert.deepEqual(answer.warnings, [
        'spec.extensions[0].by: requested 3h; if it is approved, access ends at 2026-11-21T10:50:00Z, because the template allows 2h in total',
      ]);
    });

    it('a dry run says how many rules passed', async () => {
      const answer = await allowed(validated({ extensions: asked }, {}, { dryRun: true }));
      assert.match(answer.warnings?.at(-1) ?? '', /^\d+ rules passed$/);
    });

    it('both are denied if the audit journal fails', async () => {
      world.journalWorks = false;
      assert.equal((await validated({ claimed: true })).allowed, false);
      assert.equal((await validated({ extensions: asked })).allowed, false);
    });

    it('a revocation by another person is allowed, without a read', async () => {
      const oldSpec = { claimed: true, extensions: asked };
      await allowed(validated({ revoked: true }, oldSpec, { userInfo: mallory }));
      assert.deepEqual(world.asked, []);
    });

    for (const [userInfo, found] of [
      [mallory, 'mallory is not the requester; only alice can claim or extend the access'],
      [{ ...mallory, uid: alice.uid }, 'mallory is not the requester; only alice can claim or extend the access'],
      [
        { ...alice, uid: 'u-2' },
        'alice is not the requester: the requester has this username with uid "u-1", and the caller has uid "u-2"',
      ],
    ] as const) {
      it(`an extension by ${userInfo.username} with uid ${userInfo.uid} is denied with the requester`, async () => {
        const answer = await validated({ extensions: asked }, {}, { userInfo });
        assert.equal(answer.status?.message, `NotRequester: ${found}; create a request of your own`);
      });
    }

    interface Case {
      readonly arrange?: () => void;
      readonly spec: object;
      readonly oldSpec?: object;
      readonly fields?: object;
    }
    const noTemplate = () => world.dropTemplate();
    const twice = { extensions: [...asked, ...asked] };
    const denied: [what: string, code: string, of: Case][] = [
      ['a claim by another person', 'NotRequester', { spec: { claimed: true }, fields: { userInfo: mallory } }],
      [
        'a claim without claimWithin',
        'WrongState',
        { arrange: () => world.configure({ extension }), spec: { claimed: true } },
      ],
      ['a claim without its template', 'TemplateNotFound', { arrange: noTemplate, spec: { claimed: true } }],
      ['an extension of access that is not open', 'WrongState', { arrange: closed, spec: { extensions: asked } }],
      [
        'an extension that the template does not allow',
        'NotExtendable',
        { arrange: () => world.configure({ approvals }), spec: { extensions: asked } },
      ],
      ['two extensions at once', 'WrongState', { spec: twice }],
      ['a second extension', 'WrongState', { spec: twice, oldSpec: { extensions: asked } }],
      ['an extension by no duration', 'InvalidDuration', { spec: { extensions: [{ by: 'long' }] } }],
    ];
    for (const [what, code, { arrange, spec, oldSpec, fields }] of denied) {
      it(`${what} is denied with ${code}`, async () => {
        arrange?.();
        const { status } = await validated(spec, oldSpec, fields);
        assert.equal(status?.message?.split(':')[0], code, status?.message);
        assert.equal(world.lines[0]?.code, code);
      });
    }

    for (const [field, value] of [
      ['claimed', true],
      ['extensions', asked],
      ['revokedReason', 'done'],
    ] as const) {
      it(`a new request with ${field} is denied with InvalidRequest`, async () => {
        const object = accessRequest({ requester, [field]: value });
        const answer = await world.review(paths.validatePod, reviewOf('podaccessrequests', 'CREATE', { object }));
        assert.match(answer.status?.message ?? '', new RegExp(`^InvalidRequest: spec\\.${field} `));
      });
    }
  });
});
