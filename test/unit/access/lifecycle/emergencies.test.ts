import assert from 'node:assert/strict';
import { accessVotes } from '../../../../src/api/access/access-vote.ts';
import { podAccessRequests, podAccessTemplates } from '../../../../src/api/access/pod-access.ts';
import type { RequestStatus } from '../../../../src/api/access/status.ts';
import { configMaps } from '../../../../src/api/resources.ts';
import { pluck } from '../../../support/pluck.ts';
import { LifecycleStage, peer, requestName, templateName } from './lifecycle-stage.ts';

const minute = 60_000;
const hour = 60 * minute;
const reason = 'the database does not answer';
const oncall = { groups: ['qa', 'oncall'] };

describe('emergency access', () => {
  let stage: LifecycleStage;
  beforeEach(async () => {
    stage = new LifecycleStage();
    stage.letApprove('alice', 'carol');
    stage.configure({
      approvals: peer,
      emergency: { groups: ['oncall'], maxDuration: '5m', reviewWithin: '1h' },
    });
    await stage.start();
    await stage.clock.advance(100);
  });
  afterEach(() => stage.stop());

  const ask = (name = requestName.name): void => stage.ask({ emergency: true, reason }, { ...oncall, name });
  const asked = (): Promise<void> => {
    ask();
    return stage.pass();
  };
  const statusOf = (name = requestName.name): RequestStatus =>
    (stage.cluster.find(podAccessRequests, { ...requestName, name })?.status ?? {}) as RequestStatus;
  const exists = (name = requestName.name): boolean =>
    stage.cluster.find(podAccessRequests, { ...requestName, name }) !== undefined;
  const codes = (): (string | undefined)[] => stage.lines.map(({ code }) => code);
  const warnings = (): string[] => stage.events.filter(({ type }) => type === 'Warning').map(({ reason: why }) => why);
  const review = (voter: string, decision: 'Approve' | 'Deny' = 'Approve'): string =>
    stage.vote(voter, { about: 'Review', decision, reason: 'read the journal' });
  const reviewed = (...given: Parameters<typeof review>): Promise<void> => {
    review(...given);
    return stage.pass(1000);
  };
  /** Opens access, and lets it end. */
  const useEmergency = async (): Promise<void> => {
    await asked();
    assert.ok(stage.isOpen);
    await stage.pass(6 * minute);
    assert.equal(stage.isOpen, false);
  };
  /** The review of a request that was deleted, as the webhook signs it. */
  const reviewDeleted = (username: string, uid: string): void => {
    const template = { kind: 'PodAccessTemplate', name: templateName.name, uid: 'deleted', generation: 0 } as const;
    stage.putVote({ username, uid: '', groups: [] }, { requestUid: uid, template, about: 'Review' });
  };
  const deleteRequest = async (): Promise<string> => {
    const uid = stage.request?.metadata.uid ?? '';
    await stage.cluster.client.delete(podAccessRequests, requestName, { uid });
    await stage.pass(15_000);
    assert.equal(exists(), false);
    return uid;
  };

  it('opens at once without votes, shorter than other access', async () => {
    await asked();
    assert.ok(stage.isOpen);
    assert.equal(stage.grantedMinutes, 5);
    assert.equal(statusOf().grant?.votes, undefined);
  });

  it('is loud: in the journal with the group that allowed it, as an Event, in the metrics, and in the status', async () => {
    await asked();
    const grant = stage.lines.find(({ event }) => event === 'grant');
    assert.equal(grant?.code, 'Emergency');
    assert.equal(grant?.emergency, true);
    assert.equal(grant?.reason, reason);
    assert.deepEqual(grant?.who.groups, ['oncall', 'qa']);
    assert.deepEqual(warnings(), ['EmergencyAccess']);
    const { action } = stage.events.find(({ reason: why }) => why === 'EmergencyAccess') ?? {};
    assert.equal(action, 'Emergency', 'a budget that other Events of access do not use');
    assert.match(await stage.metrics.expose(), /drawbridge_emergencies_total\{kind="PodAccessRequest"\} 1/);
    assert.equal(statusOf().approval?.state, 'ReviewOwed');
    assert.match(stage.approved, /person must review it by/);
  });

  it('is shown as overdue as soon as its review is, while it is still open', async () => {
    stage.configure({ maxDuration: '3h', emergency: { groups: ['oncall'], maxDuration: '2h', reviewWithin: '1h' } });
    await stage.asked({ emergency: true, reason, duration: '2h' }, oncall);
    stage.podBecomesReady();
    await stage.pass(59 * minute);
    assert.equal(statusOf().approval?.state, 'ReviewOwed');
    await stage.pass(2 * minute);
    assert.equal(statusOf().approval?.state, 'ReviewOverdue');
    assert.ok(warnings().includes('ReviewOverdue'));
    assert.ok(stage.isOpen);
  });

  it('is recorded as owing a review before it is granted', async () => {
    let fails = true;
    stage.cluster.fault = ({ plural }) => {
      if (fails && plural === 'configmaps') throw new Error('the API server is away');
    };
    ask();
    await stage.pass(5000);
    assert.equal(statusOf().grant, undefined);
    assert.equal(stage.isOpen, false);
    fails = false;
    await stage.pass(5000);
    assert.ok(stage.isOpen);
    assert.equal(stage.reviews().list().length, 1);
    assert.deepEqual(stage.cluster.names(configMaps), ['drawbridge-system/drawbridge-emergency-reviews']);
  });

  it('owes one review after a crash between its record and its grant', async () => {
    stage.cluster.fail('patch', 'podaccessrequests');
    ask();
    await stage.pass(1000);
    assert.equal(stage.reviews().list().length, 1);
    await stage.stop();
    stage.cluster.fault = () => {};
    await stage.start();
    await stage.pass();
    assert.ok(stage.isOpen);
    assert.equal(stage.reviews().list().length, 1);
  });

  for (const [title, spec, groups, code] of [
    ['to members of the allowed groups only', { emergency: true, reason }, ['devs'], 'EmergencyNotAllowed'],
    ['for a reason that says nothing', { emergency: true, reason: 'urgent' }, ['oncall'], 'InvalidRequest'],
    ['for later', { emergency: true, reason, startAt: '2026-11-21T12:00:00Z' }, ['oncall'], 'EmergencyNotAllowed'],
  ] as const) {
    it(`is not opened ${title}`, async () => {
      // They hold all that the template gives, which makes other requests eligible.
      stage.cluster.allows = () => true;
      await stage.asked(spec, { groups: [...groups] });
      assert.ok(codes().includes(code), codes().join());
      assert.equal(stage.isOpen, false);
      assert.equal(stage.reviews().list().length, 0);
    });
  }

  it('is not opened through a stored template that gives a group the access', async () => {
    await stage.configured({ grantTo: 'AllowedGroups' });
    await asked();
    assert.equal(stage.isOpen, false);
    assert.deepEqual(codes(), ['InvalidTemplate']);
    assert.equal(stage.cluster.names(configMaps).length, 0, 'no review is owed');
  });

  it('ends like other access, and its request stays until the review', async () => {
    await useEmergency();
    const { approval, children, ready } = statusOf();
    assert.deepEqual([approval?.state, children, ready], ['ReviewOwed', [], false]);
    const ended = stage.condition('AccessStillValid');
    assert.equal(`${ended?.status} ${ended?.reason}`, 'False Expired');
    assert.equal(stage.lines.at(-1)?.code, 'Expired');
    await reviewed('carol');
    assert.equal(exists(), false);
    assert.equal(stage.reviews().list().length, 0);
    const line = stage.lines.at(-1);
    assert.equal(`${line?.event} ${line?.verdict} ${line?.who.user}`, 'review reviewed alice');
    assert.equal(line?.votes?.[0]?.voter, 'carol');
  });

  it('is reviewed by a denial, too', async () => {
    await useEmergency();
    await reviewed('carol', 'Deny');
    assert.equal(exists(), false);
    assert.ok(warnings().includes('EmergencyReviewed'));
  });

  it('may be reviewed while it is open, and then its request goes with it', async () => {
    await asked();
    review('carol');
    await stage.pass();
    assert.ok(stage.isOpen);
    assert.equal(statusOf().approval?.state, 'Reviewed');
    await stage.pass(6 * minute);
    assert.equal(exists(), false);
  });

  describe('whose review is denied while it is open', () => {
    const text = 'carol did not find the emergency justified: read the journal';

    it('ends with that vote, which also settles the review, and says so in the journal and in the Event', async () => {
      await asked();
      assert.ok(stage.isOpen);
      await reviewed('carol', 'Deny');
      assert.equal(stage.isOpen, false);
      const end = stage.lines.find(({ event }) => event === 'revocation');
      assert.deepEqual([end?.code, end?.message], ['VoteDenied', text]);
      assert.deepEqual(pluck(end?.votes ?? [], 'voter', 'decision'), [['carol', 'Deny']]);
      assert.equal(stage.events.find(({ reason }) => reason === 'AccessRevoked')?.note, `access ended: ${text}`);
      assert.equal(stage.reviews().list().length, 0);
      assert.equal(stage.auditVerdicts.filter((line) => line === 'review reviewed').length, 1);
      assert.ok(warnings().includes('EmergencyReviewed'));
      await stage.pass(minute);
      assert.equal(exists(), false);
    });

    it('is recorded as not justified, if an approval of the review came before the server had counted it', async () => {
      stage.letApprove('carol', 'dave');
      await asked();
      await stage.stop();
      await reviewed('carol');
      review('dave', 'Deny');
      await stage.start();
      await stage.pass(1000);
      assert.equal(stage.isOpen, false);
      const votes = stage.lines.filter(({ event }) => event === 'review').flatMap((line) => line.votes ?? []);
      assert.deepEqual(pluck(votes, 'voter', 'decision'), [['dave', 'Deny']]);
    });

    it('ends although another person has already approved the review', async () => {
      stage.letApprove('carol', 'dave');
      await asked();
      await reviewed('carol');
      assert.ok(stage.isOpen);
      await reviewed('dave', 'Deny');
      assert.equal(stage.isOpen, false);
    });

    it('ends although the audit journal cannot be written, and its review stays owed until then', async () => {
      await asked();
      stage.journalFails = true;
      await reviewed('carol', 'Deny');
      assert.equal(stage.isOpen, false);
      assert.equal(stage.reviews().list().length, 1);
      assert.ok(stage.condition('AccessStillValid')?.message.endsWith(`: ${text}`));
      stage.journalFails = false;
      await stage.pass(minute);
      assert.equal(stage.reviews().list().length, 0);
      assert.equal(exists(), false);
    });

    it('does not open if the vote came before its grant', async () => {
      await stage.stop();
      ask();
      review('carol', 'Deny');
      await stage.start();
      await stage.pass(1000);
      assert.equal(statusOf().grant, undefined);
      assert.equal(stage.isOpen, false);
      assert.deepEqual(codes(), ['VoteDenied']);
    });

    for (const [who, vote] of [
      ['the requester, although they may approve', () => review('alice', 'Deny')],
      ['a person without the verb approve', () => review('eve', 'Deny')],
      [
        'a vote that was changed after it was signed',
        () => stage.vote('carol', { about: 'Review', decision: 'Approve' }, { decision: 'Deny' }),
      ],
    ] as const) {
      it(`is not ended by ${who}`, async () => {
        await asked();
        vote();
        await stage.pass(1000);
        assert.ok(stage.isOpen);
        assert.equal(stage.reviews().list().length, 1);
      });
    }
  });

  it('reports its end once, whatever restarts', async () => {
    await useEmergency();
    const before = stage.auditVerdicts.filter((line) => line === 'revocation revoked').length;
    await stage.restart();
    await stage.pass(1000);
    await reviewed('carol');
    assert.equal(exists(), false);
    assert.equal(before, 1);
    assert.equal(stage.auditVerdicts.filter((line) => line === 'revocation revoked').length, 1);
  });

  for (const [who, vote] of [
    ['the requester, although they may approve', () => review('alice')],
    ['a person without the verb approve', () => review('eve')],
    ['a vote about the access', () => stage.vote('carol')],
  ] as const) {
    it(`is not reviewed by ${who}`, async () => {
      await useEmergency();
      vote();
      await stage.pass(1000);
      assert.ok(exists());
      assert.equal(stage.reviews().list().length, 1);
    });
  }

  it('may be used again while a review is owed that is not overdue', async () => {
    await useEmergency();
    ask('again');
    await stage.pass();
    assert.ok(stage.isOpen);
  });

  describe('whose review is overdue', () => {
    const becomeOverdue = (): Promise<void> => stage.pass(hour);
    const usedAndOverdue = async (): Promise<void> => {
      await useEmergency();
      await becomeOverdue();
    };
    const askAgain = async (): Promise<string | undefined> => {
      ask('again');
      await stage.pass(1000);
      return statusOf('again').grant ? 'granted' : stage.lines.at(-1)?.code;
    };

    it('says so in the status, as an Event, and in the metrics', async () => {
      await usedAndOverdue();
      assert.equal(statusOf().approval?.state, 'ReviewOverdue');
      assert.ok(warnings().includes('ReviewOverdue'));
      assert.match(await stage.metrics.expose(), /drawbridge_reviews_overdue 1/);
    });

    it('blocks the next one until it is reviewed', async () => {
      await usedAndOverdue();
      assert.equal(await askAgain(), 'ReviewOverdue');
      await reviewed('carol');
      assert.equal(exists(), false);
      ask('once-more');
      await stage.pass();
      assert.ok(statusOf('once-more').grant);
    });

    it('does not block other access through the template', async () => {
      await usedAndOverdue();
      await stage.asked({}, { name: 'usual' });
      assert.equal(statusOf('usual').approval?.state, 'Pending');
    });

    it('blocks the next one although the request was deleted, and another person can still review it', async () => {
      await useEmergency();
      const uid = await deleteRequest();
      await becomeOverdue();
      assert.equal(await askAgain(), 'ReviewOverdue');
      reviewDeleted('alice', uid);
      await stage.pass(1000);
      assert.equal(stage.reviews().list().length, 1);
      reviewDeleted('carol', uid);
      await stage.pass(1000);
      assert.equal(stage.reviews().list().length, 0);
      const left = stage.cluster.names(accessVotes);
      assert.deepEqual(left, [], 'votes without an owner are deleted once the review is made');
    });

    it('blocks the next one although the request was deleted while access was open', async () => {
      await asked();
      await deleteRequest();
      assert.equal(stage.isOpen, false);
      await becomeOverdue();
      assert.equal(await askAgain(), 'ReviewOverdue');
    });

    it('blocks the next one although the template was deleted and created again', async () => {
      await useEmergency();
      const template = stage.cluster.find(podAccessTemplates, templateName);
      assert.ok(template);
      stage.cluster.drop(podAccessTemplates, templateName);
      await stage.pass(1000);
      const { uid: _, ...metadata } = template.metadata;
      stage.cluster.put(podAccessTemplates, { ...template, metadata: { ...metadata, uid: 'new' } });
      await becomeOverdue();
      assert.equal(await askAgain(), 'ReviewOverdue');
    });

    it('blocks the next one in a new process', async () => {
      await useEmergency();
      await stage.stop();
      await stage.clock.advance(hour);
      await stage.start();
      await stage.pass();
      assert.equal(statusOf().approval?.state, 'ReviewOverdue');
      assert.equal(await askAgain(), 'ReviewOverdue');
    });
  });

  it('ends when the template no longer lets the group use it', async () => {
    await asked();
    await stage.configured({ emergency: { groups: ['sre'], maxDuration: '5m', reviewWithin: '1h' } });
    assert.equal(stage.isOpen, false);
    assert.ok(codes().includes('NoLongerAllowed'));
    assert.equal(statusOf().approval?.state, 'ReviewOwed');
  });

  it('ends sooner when the template shortens it, and stays open through other edits', async () => {
    await asked();
    await stage.configured({ allowedGroups: ['others'] });
    assert.ok(stage.isOpen);
    stage.configure({ emergency: { groups: ['oncall'], maxDuration: '2m', reviewWithin: '1h' } });
    await stage.pass(3 * minute);
    assert.equal(stage.isOpen, false);
    assert.ok(codes().includes('Shortened'));
  });

  it('ends by a denial of a person who may approve', async () => {
    await asked();
    await stage.voted('carol', { decision: 'Deny', reason: 'no emergency' });
    assert.equal(stage.isOpen, false);
    assert.ok(codes().includes('VoteDenied'));
    assert.ok(exists());
  });

  it('stays after its review if its name was generated, and shows that it was reviewed', async () => {
    await stage.asked({ emergency: true, reason }, { ...oncall, generated: true });
    await stage.pass(6 * minute);
    assert.equal(statusOf().approval?.state, 'ReviewOwed');
    assert.equal(statusOf().ended?.how, 'Expired');
    review('carol', 'Deny');
    await stage.pass(minute);
    assert.equal(statusOf().approval?.state, 'Reviewed');
    const verdict = 'carol did not find the emergency justified: read the journal';
    assert.equal(stage.condition('AccessApproved')?.message, `emergency access without approvals; ${verdict}`);
    assert.deepEqual(pluck(statusOf().approval?.votes ?? [], 'voter', 'decision'), [['carol', 'Deny']]);
    await stage.pass(23 * hour);
    assert.ok(exists());
    await stage.pass(hour);
    assert.equal(exists(), false);
  });

  it('says after its end how it was reviewed while it was open', async () => {
    await stage.asked({ emergency: true, reason }, { ...oncall, generated: true });
    await reviewed('carol');
    await stage.pass(6 * minute);
    const verdict = 'carol found the emergency justified: read the journal';
    assert.equal(stage.condition('AccessApproved')?.message, `emergency access without approvals; ${verdict}`);
  });

  it('says that its review is no longer owed if a user removed the entry', async () => {
    await stage.asked({ emergency: true, reason }, { ...oncall, generated: true });
    await stage.pass(6 * minute);
    stage.cluster.drop(configMaps, { namespace: 'drawbridge-system', name: 'drawbridge-emergency-reviews' });
    await stage.pass(minute);
    assert.equal(statusOf().approval?.state, 'Reviewed');
    assert.match(stage.approved, /; no review of the emergency is owed any more$/);
  });
});
