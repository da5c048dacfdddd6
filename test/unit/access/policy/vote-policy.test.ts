import assert from 'node:assert/strict';
import { explain, firstViolation } from '../../../../src/access/policy/policy.ts';
import { type VotedRequest, type VoteInput, votePolicy } from '../../../../src/access/policy/vote-policy.ts';
import { approvals } from '../../../support/access-objects.ts';
import { templateWith } from '../../admission/support.ts';

const extension = { times: 3, total: '2h', approvals: 'Same' } as const;

type FoundRequest = Extract<VotedRequest, { found: true }>;
const request: FoundRequest = {
  found: true,
  uid: 'r-1',
  templateName: 'payments-shell',
  requester: { username: 'alice', uid: 'u-1' },
  emergency: false,
  extensions: 0,
  decidedExtensions: 0,
  ended: false,
};
const voted = { kind: 'PodAccessTemplate', name: 'payments-shell', uid: 't-1', generation: 1 } as const;
const input: VoteInput = {
  namespace: 'payments',
  voter: { username: 'carol', uid: 'u-3', groups: [] },
  spec: { request: { kind: 'PodAccessRequest', name: 'debug' }, template: voted, about: 'Access', decision: 'Approve' },
  request,
  template: templateWith({ approvals }),
  mayApprove: true,
};
const denial = (over: Partial<VoteInput>): string | undefined => {
  const violation = firstViolation(votePolicy, { ...input, ...over });
  return violation && `${violation.code}: ${violation.message}`;
};
const verdicts = (over: Partial<VoteInput>): Record<string, string> =>
  Object.fromEntries(explain(votePolicy, { ...input, ...over }).map(({ rule, verdict }) => [rule, verdict]));

describe('the policy for votes', () => {
  describe('explains', () => {
    const robot = { username: 'system:serviceaccount:ops:oncall', uid: '', groups: [] };

    it('that a vote would count', () => {
      assert.deepEqual([...new Set(Object.values(verdicts({})))], ['pass']);
    });

    it('which rules need a request that does not exist', () => {
      const missing = {
        request: { found: false },
        template: { found: false },
        mayApprove: false,
        voter: robot,
      } as const;
      assert.deepEqual(verdicts(missing), {
        request: 'fail',
        open: 'unknown',
        template: 'unknown',
        current: 'unknown',
        question: 'unknown',
        'other-person': 'unknown',
        person: 'unknown',
        approver: 'unknown',
        group: 'unknown',
        max: 'pass',
      });
    });

    it('which rules need a template that does not exist', () => {
      assert.deepEqual(verdicts({ template: { found: false }, mayApprove: false }), {
        request: 'pass',
        open: 'pass',
        template: 'fail',
        current: 'unknown',
        question: 'unknown',
        'other-person': 'pass',
        person: 'pass',
        approver: 'unknown',
        group: 'unknown',
        max: 'pass',
      });
    });

    it('every rule for a review whose template does not exist', () => {
      const review = {
        spec: { ...input.spec, about: 'Review' },
        request: { ...request, emergency: true, ended: true, isDeleted: true },
        template: { found: false },
      } as const;
      assert.deepEqual([...new Set(Object.values(verdicts(review)))], ['pass']);
      assert.equal(verdicts({ ...review, mayApprove: false })['approver'], 'fail');
      assert.equal(verdicts({ ...review, voter: robot })['person'], 'fail');
    });
  });

  it('names the requester to a voter with the same uid under another username', () => {
    const requester = { username: 'alice', uid: 'u-3' };
    assert.equal(
      denial({ request: { ...request, requester }, voter: { ...input.voter, username: 'alice2' } }),
      'SelfApproval: alice2 is the requester (by uid; the request names alice); another person must decide',
    );
  });

  it('says that it cannot know the requester', () => {
    assert.equal(
      denial({ request: { ...request, requester: undefined } }),
      'SelfApproval: the request names no requester, so the server cannot check that the voter is another person; ask the requester to create a new request, and an administrator to check that the mutating webhook of drawbridge, which sets the requester, is installed',
    );
  });

  it('says which groups must approve to a voter whose approval would not count', () => {
    const all = [
      { name: 'owner', count: 1, groups: ['payments-leads'] },
      { name: 'security', count: 1, groups: ['secops', 'ciso'] },
    ];
    const template = templateWith({ approvals: { ...approvals, all } });
    assert.equal(
      denial({ template }),
      'NotApprover: an approval of carol would not count: the user is in none of the groups that template payments-shell needs (owner: [payments-leads]; security: [secops, ciso]); ask members of these groups to approve; you can only deny',
    );
    assert.equal(denial({ template, voter: { ...input.voter, groups: ['ciso'] } }), undefined);
    assert.equal(denial({ template, spec: { ...input.spec, decision: 'Deny' } }), undefined);
    const review = { ...input.spec, about: 'Review' } as const;
    assert.equal(denial({ template, spec: review, request: { ...request, emergency: true } }), undefined);
  });

  describe('says for which version of which template a vote is', () => {
    it('if the request names another template', () => {
      assert.equal(
        denial({ spec: { ...input.spec, template: { ...voted, name: 'orders-shell', uid: 't-9', generation: 7 } } }),
        'TemplateChanged: the vote is for generation 7 of template orders-shell (uid t-9), but the request uses generation 1 of template payments-shell (uid t-1); read that template, then vote again',
      );
    });

    it('if the generation is not known yet', () => {
      assert.equal(
        denial({ template: { ...templateWith({ approvals }), generation: Number.NaN } }),
        'TemplateChanged: the vote is for generation 1 of template payments-shell (uid t-1), but the request uses a newer version of template payments-shell (uid t-1); read that template, then vote again',
      );
    });
  });

  describe('says what a vote can be about', () => {
    for (const [what, about, over, config, wanted] of [
      ['access', 'Review', {}, { approvals }, 'set spec.about to Access to decide that instead'],
      [
        'access, and open extensions',
        'Extension-1',
        { extensions: 3, decidedExtensions: 1 },
        { approvals, extension },
        'set spec.about to Access, Extension-2, or Extension-3 to decide that instead',
      ],
      [
        'access, and the review of an emergency',
        'Extension-1',
        { emergency: true },
        { approvals },
        'set spec.about to Access or Review to decide that instead',
      ],
      [
        'nothing but a denial, once access is granted',
        'Access',
        { isGranted: true },
        { approvals },
        'no vote is needed; to deny the request or end its access, set spec.decision to Deny and omit spec.about',
      ],
      [
        'an open extension, once access is granted',
        'Access',
        { isGranted: true, extensions: 1 },
        { approvals, extension },
        'set spec.about to Extension-1 to decide that instead',
      ],
      [
        'nothing but a denial',
        'Access',
        {},
        {},
        'no vote is needed; to deny the request or end its access, set spec.decision to Deny and omit spec.about',
      ],
      ['nothing after the end', 'Review', { ended: true }, { approvals }, 'no vote is needed'],
    ] as const) {
      it(what, () => {
        assert.equal(
          denial({ spec: { ...input.spec, about }, request: { ...request, ...over }, template: templateWith(config) }),
          `NothingToDecide: spec.about is "${about}", and the request does not wait for that decision; ${wanted}`,
        );
      });
    }

    for (const [what, decision, ended, wanted] of [
      [
        'the end of its access after an emergency was reviewed',
        'Deny',
        false,
        'to deny the request or end its access, set spec.about to Access',
      ],
      ['nothing after an emergency was reviewed and has ended', 'Deny', true, 'no vote is needed'],
      ['nothing more than the first review', 'Approve', true, 'no vote is needed'],
    ] as const) {
      it(what, () => {
        const spec = { ...input.spec, about: 'Review', decision } as const;
        assert.equal(
          denial({ spec, request: { ...request, emergency: true, reviewed: true, ended } }),
          `NothingToDecide: spec.about is "Review", and the emergency has been reviewed already; ${wanted}`,
        );
      });
    }

    it('a denial of what waits, or of the whole access, to a voter who denies', () => {
      const spec = { ...input.spec, about: 'Extension-1', decision: 'Deny' } as const;
      const over = { isGranted: true, extensions: 2, decidedExtensions: 1 } as const;
      assert.equal(
        denial({ spec, request: { ...request, ...over }, template: templateWith({ approvals, extension }) }),
        'NothingToDecide: spec.about is "Extension-1", and the request does not wait for that decision; set spec.about to Extension-2 to decide that instead; to deny the request or end its access, set spec.about to Access',
      );
    });
  });
});
