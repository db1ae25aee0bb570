using System;
using System.Collections.Generic;

namespace Eyestream
{
    /// <summary>One stream of one device. The link's thread puts in what comes; Pump hands it out on the thread that calls it,
    /// so that in a game all events come on the main thread. What waits is bounded: the oldest chunk goes first.</summary>
    public sealed class Feed : ILinkListener, IDisposable
    {
        public const int MostWaiting = 256;
        public const long MostWaitingBytes = 16777216;
        const int Sessions = 64, MostEarly = 16;

        /// <summary>One of: a chunk, a description, a status, a budget, a fault.</summary>
        struct Happening
        {
            public Chunk Chunk;
            public StreamDescription Description;
            public StreamStatus? Status;
            public Budget? Budget;
            public Fault? Fault;
            public int Bytes;
        }

        readonly object gate = new object();
        readonly LinkedList<Happening> waiting = new LinkedList<Happening>();
        readonly MqttLink link;
        readonly string prefix, sidecarTopic;
        long waitingBytes;

        // Of the link's thread, below the gate:
        readonly Queue<Dictionary<string, object>> early = new Queue<Dictionary<string, object>>();
        readonly Dictionary<ulong, ulong> lastOfSession = new Dictionary<ulong, ulong>();
        readonly Queue<ulong> sessions = new Queue<ulong>();
        StreamDescription described;
        StreamStatus? said;
        bool linked, sidecarGone;
        string sidecarReason = "", unlinkedReason = "not yet";
        StreamStatus told;
        Fault lastFault;

        public event Action<Chunk> OnChunk;
        public event Action<StreamDescription> OnDescribed;
        public event Action<StreamStatus> OnStatus;
        public event Action<Budget> OnBudget;
        public event Action<Fault> OnFault;

        /// <summary>What has been handed out last; null, or negative chunks, before anything came.</summary>
        public StreamDescription Description { get; private set; }
        public StreamStatus Status { get; private set; }
        public Budget Budget { get; private set; }
        /// <summary>Payloads that were none; chunks that nobody took in time; chunks that came twice.</summary>
        public int Refusals { get; private set; }
        public int Dropped { get; private set; }
        public int Repeated { get; private set; }

        /// <summary>Begin to listen. Wrong settings are a fault, which comes with the first Pump; then nothing is connected.</summary>
        /// <param name="place">The broker; null: nothing is connected, and a transport of your own calls what ILinkListener has.</param>
        /// <param name="device">Pseudonym of the tracker.</param>
        /// <param name="stream">"features", "gaze", or what the operator has named.</param>
        /// <param name="sidecar">Its name, to hear when it dies without a word; may be empty.</param>
        public Feed(BrokerPlace place, string device, string stream, string sidecar)
        {
            Status = told = new StreamStatus(StreamState.NotLinked, "not linked", unlinkedReason);
            Budget = new Budget(-1, "", 0);
            bool heard = !string.IsNullOrEmpty(sidecar);
            string wrong = BrokerPlace.WrongName("device", device);
            if (wrong.Length == 0) wrong = BrokerPlace.WrongName("stream", stream);
            if (wrong.Length == 0 && heard) wrong = BrokerPlace.WrongName("sidecar", sidecar);
            if (wrong.Length == 0 && place != null) wrong = place.Wrong();
            prefix = "eyestream/v1/" + device + "/" + stream + "/";
            sidecarTopic = heard ? "eyestream/v1/" + sidecar + "/sidecar/status" : "";
            if (wrong.Length > 0) Fault(new Fault(FaultKind.Settings, wrong));
            else if (place != null) link = new MqttLink(place, Topics(), this);
        }

        /// <summary>What to subscribe to at QoS 1, the description before the chunks.</summary>
        public string[] Topics()
        {
            var topics = new List<string> { prefix + "budget", prefix + "meta", prefix + "status", prefix + "private" };
            if (sidecarTopic.Length > 0) topics.Add(sidecarTopic);
            return topics.ToArray();
        }

        public void Dispose() { if (link != null) link.Dispose(); }

        /// <summary>Seconds of chunks that are left; NaN while it is not known.</summary>
        public double BudgetSeconds
        {
            get { return Budget.Chunks < 0 || Description == null ? double.NaN : Budget.Chunks * Description.SecondsOfChunk; }
        }

        public void Linked()
        {
            lock (gate)
            {
                linked = true;
                sidecarGone = false;
                said = null;
                lastFault = default(Fault);
                Tell();
            }
        }

        public void Unlinked(string reason)
        {
            lock (gate)
            {
                linked = false;
                unlinkedReason = reason;
                Tell();
            }
        }

        /// <summary>A fault that says the same as the one before is left out, until the link stands again.</summary>
        public void Fault(Fault fault)
        {
            lock (gate)
            {
                if (fault.Kind == lastFault.Kind && fault.Message == lastFault.Message) return;
                lastFault = fault;
                Put(new Happening { Fault = fault });
            }
        }

        public void Message(string topic, byte[] payload, bool retained)
        {
            bool ofSidecar = sidecarTopic.Length > 0 && topic == sidecarTopic;
            string kind = ofSidecar ? "status" : topic.StartsWith(prefix, StringComparison.Ordinal) ? topic.Substring(prefix.Length) : "";
            if (kind != "status" && kind != "meta" && kind != "budget" && kind != "private") return; // nobody asked for it
            if (kind == "private" && retained) return; // nothing retained is live
            try
            {
                var message = Payload.Decode(kind, payload);
                lock (gate) Note(ofSidecar ? "sidecar" : kind, message, payload.Length);
            }
            catch (Refused refused)
            {
                lock (gate) Refusals++;
                Fault(new Fault(FaultKind.Payload, "a message at " + topic + " was refused: " + refused.Message));
            }
        }

        void Note(string kind, Dictionary<string, object> m, int bytes)
        {
            if (kind == "private") Release(m, bytes);
            else if (kind == "meta")
            {
                described = new StreamDescription(m);
                Put(new Happening { Description = described, Bytes = bytes });
                while (early.Count > 0) Release(early.Dequeue(), bytes);
            }
            else if (kind == "budget")
            {
                ulong resumes = m.ContainsKey("resumes_at") ? (ulong)m["resumes_at"] : 0;
                long chunks = (long)Math.Min((ulong)m["chunks"], long.MaxValue);
                Put(new Happening { Budget = new Budget(chunks, (string)m["ceiling"], resumes) });
            }
            else
            {
                var status = StreamStatus.Of((string)m["state"], (string)m["reason"]);
                if (kind == "status") said = status;
                else sidecarGone = status.State == StreamState.Offline;
                if (kind == "sidecar") sidecarReason = status.Reason;
                Tell();
            }
        }

        /// <summary>Put the status that follows from link, sidecar and stream, in this order, where it is another one.</summary>
        void Tell()
        {
            var now = !linked ? new StreamStatus(StreamState.NotLinked, "not linked", unlinkedReason)
                : sidecarGone ? new StreamStatus(StreamState.Offline, "offline", sidecarReason)
                : said ?? new StreamStatus(StreamState.Waiting, "waiting", "no sidecar has said anything at " + prefix + "status");
            if (now.Same(told)) return;
            told = now;
            Put(new Happening { Status = now });
        }

        void Release(Dictionary<string, object> m, int bytes)
        {
            if (described == null)
            {
                if (early.Count == MostEarly)
                {
                    early.Dequeue();
                    Dropped++;
                }
                early.Enqueue(m);
                return;
            }
            ulong session = (ulong)m["session"], index = (ulong)m["chunk"], last, missing = 0;
            if (((ulong[])m["shape"])[0] != (ulong)described.Names.Length) throw new Refused("shape");
            if (!lastOfSession.TryGetValue(session, out last)) Begin(session);
            else if (index <= last)
            {
                Repeated++;
                return;
            }
            else missing = index - last - 1;
            lastOfSession[session] = index;
            Put(new Happening { Chunk = new Chunk(described, m, missing), Bytes = bytes });
        }

        void Begin(ulong session)
        {
            sessions.Enqueue(session);
            if (sessions.Count > Sessions) lastOfSession.Remove(sessions.Dequeue());
        }

        void Put(Happening happening)
        {
            waiting.AddLast(happening);
            waitingBytes += happening.Bytes;
            while (waiting.Count > MostWaiting || waitingBytes > MostWaitingBytes)
            {
                var oldest = waiting.First;
                while (oldest != null && oldest.Value.Chunk == null) oldest = oldest.Next;
                if (oldest == null) oldest = waiting.First; // states: the newest one counts
                else Dropped++;
                waitingBytes -= oldest.Value.Bytes;
                waiting.Remove(oldest);
            }
        }

        /// <summary>Hand out what has come, in its order. What comes meanwhile waits for the next call.</summary>
        public void Pump()
        {
            int count;
            lock (gate) count = waiting.Count;
            for (; count > 0; count--)
            {
                Happening next;
                lock (gate)
                {
                    if (waiting.Count == 0) return;
                    next = waiting.First.Value;
                    waiting.RemoveFirst();
                    waitingBytes -= next.Bytes;
                }
                Hand(next);
            }
        }

        void Hand(Happening next)
        {
            if (next.Chunk != null) { if (OnChunk != null) OnChunk(next.Chunk); }
            else if (next.Description != null)
            {
                Description = next.Description;
                if (OnDescribed != null) OnDescribed(Description);
            }
            else if (next.Status.HasValue)
            {
                Status = next.Status.Value;
                if (OnStatus != null) OnStatus(Status);
            }
            else if (next.Budget.HasValue)
            {
                Budget = next.Budget.Value;
                if (OnBudget != null) OnBudget(Budget);
            }
            else if (next.Fault.HasValue && OnFault != null) OnFault(next.Fault.Value);
        }
    }
}
