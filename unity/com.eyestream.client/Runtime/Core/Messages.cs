using System;
using System.Collections.Generic;

namespace Eyestream
{
    /// <summary>What the values of a stream are.</summary>
    public enum ChunkKind { Features, Gaze, Words }

    /// <summary>How a stream is. NotLinked and Waiting are the client's own words, the others the sidecar's.</summary>
    public enum StreamState
    {
        /// <summary>No link to the broker.</summary>
        NotLinked,
        /// <summary>The link stands, and nobody has said anything of this stream: look at the device's and the stream's name.</summary>
        Waiting,
        Online, Exhausted, Degraded, Paused, Offline,
        /// <summary>A word of a later version; see StreamStatus.Word.</summary>
        Unknown,
    }

    /// <summary>How a stream is, and why, in the words of docs/protocol.md.</summary>
    public struct StreamStatus
    {
        public readonly StreamState State;
        public readonly string Word, Reason;

        public StreamStatus(StreamState state, string word, string reason)
        {
            State = state;
            Word = word;
            Reason = reason;
        }

        public static StreamStatus Of(string word, string reason)
        {
            var state = word == "online" ? StreamState.Online : word == "exhausted" ? StreamState.Exhausted
                : word == "degraded" ? StreamState.Degraded : word == "paused" ? StreamState.Paused
                : word == "offline" ? StreamState.Offline : StreamState.Unknown;
            return new StreamStatus(state, word, reason);
        }

        public bool Same(StreamStatus other) { return State == other.State && Word == other.Word && Reason == other.Reason; }

        public override string ToString() { return Reason.Length == 0 || Reason == Word ? Word : Word + ": " + Reason; }
    }

    /// <summary>What is left until the ceiling that is reached first.</summary>
    public struct Budget
    {
        /// <summary>Chunks that will still come; negative: not known yet.</summary>
        public readonly long Chunks;
        /// <summary>"session", "day" or "lifetime".</summary>
        public readonly string Ceiling;
        /// <summary>Seconds since 1970, UTC, from which there is more; 0: not known.</summary>
        public readonly ulong ResumesAt;

        public Budget(long chunks, string ceiling, ulong resumesAt)
        {
            Chunks = chunks;
            Ceiling = ceiling;
            ResumesAt = resumesAt;
        }
    }

    /// <summary>Whose turn it is to mend a fault, roughly.</summary>
    public enum FaultKind { Settings, Network, Tls, Login, Rights, Protocol, Payload }

    /// <summary>Something that keeps chunks from coming, in a sentence for a developer.</summary>
    public struct Fault
    {
        public readonly FaultKind Kind;
        public readonly string Message;

        public Fault(FaultKind kind, string message)
        {
            Kind = kind;
            Message = message;
        }

        public override string ToString() { return Kind + ": " + Message; }
    }

    /// <summary>What a sidecar says of a stream: names, units, error, and what is guaranteed.</summary>
    public sealed class StreamDescription
    {
        public readonly string[] Names, Units;
        /// <summary>The error to expect of each feature, in its unit: one standard deviation.</summary>
        public readonly float[] NoiseSd;
        public readonly double RateHz, Epsilon, Delta;
        public readonly ulong RowsOfChunk;
        public readonly string Mechanism;
        /// <summary>One fact a line: a topic, a colon, and a sentence. The first line is the claim.</summary>
        public readonly string Guarantee;
        public readonly ChunkKind Kind;

        public StreamDescription(Dictionary<string, object> meta)
        {
            Names = (string[])meta["names"];
            Units = (string[])meta["units"];
            NoiseSd = (float[])meta["noise_sd"];
            RateHz = (double)meta["rate_hz"];
            Epsilon = (double)meta["epsilon"];
            Delta = (double)meta["delta"];
            RowsOfChunk = (ulong)meta["n"];
            Mechanism = (string)meta["mechanism"];
            Guarantee = (string)meta["guarantee"];
            bool words = Units.Length > 0 && Array.TrueForAll(Units, unit => unit == "probability");
            bool gaze = IndexOf("gaze_x") >= 0 && IndexOf("gaze_y") >= 0;
            Kind = gaze ? ChunkKind.Gaze : words ? ChunkKind.Words : ChunkKind.Features;
        }

        /// <summary>Seconds between two chunks.</summary>
        public double SecondsOfChunk { get { return RowsOfChunk / RateHz; } }

        /// <summary>Place of a feature; negative where the stream has none of this name.</summary>
        public int IndexOf(string name) { return Array.IndexOf(Names, name); }
    }

    /// <summary>Where the eye looked in one slot, as it was released: about half of the gaze lies within Error of it.</summary>
    public struct GazeSample
    {
        /// <summary>Degrees to the right, degrees up, from straight ahead of the head.</summary>
        public float X, Y;
        /// <summary>Degrees; NaN where the mechanism tells no error.</summary>
        public float Error;
        /// <summary>How likely the eye was lost, from 0 to 1.</summary>
        public float Lost;
        /// <summary>Seconds of the tracker's clock at the end of the slot; NaN where it tells no time.</summary>
        public double Time;
    }

    /// <summary>One release. It comes once, and the same arrays are given to all who listen: do not write to them.</summary>
    public sealed class Chunk
    {
        public readonly StreamDescription Description;
        public readonly ulong Session, Index;
        /// <summary>Chunks of this session before this one that never came: withheld by the budget, or lost on the way.</summary>
        public readonly ulong MissingBefore;
        /// <summary>Row r of feature f is at f * Rows + r.</summary>
        public readonly float[] Values;
        public readonly int Rows;
        /// <summary>Seconds: from the session's start to the first row, and between rows; At is T0 on the tracker's clock, or NaN.</summary>
        public readonly double T0, Dt, At;
        /// <summary>What this chunk cost, all features together.</summary>
        public readonly double Epsilon, Delta;

        public Chunk(StreamDescription description, Dictionary<string, object> message, ulong missingBefore)
        {
            Description = description;
            MissingBefore = missingBefore;
            Session = (ulong)message["session"];
            Index = (ulong)message["chunk"];
            Values = (float[])message["values"];
            Rows = (int)((ulong[])message["shape"])[1];
            T0 = (double)message["t0"];
            Dt = (double)message["dt"];
            At = message.ContainsKey("at") ? (double)message["at"] : double.NaN;
            Epsilon = (double)message["epsilon"];
            Delta = (double)message["delta"];
        }

        public ChunkKind Kind { get { return Description.Kind; } }

        public float Value(int feature, int row) { return Values[feature * Rows + row]; }

        /// <summary>The newest value of a feature, and the error to expect; false where the stream has none of this name.</summary>
        public bool TryGet(string name, out float value, out float error)
        {
            int feature = Description.IndexOf(name);
            value = feature < 0 ? float.NaN : Value(feature, Rows - 1);
            error = feature < 0 ? float.NaN : Description.NoiseSd[feature];
            return feature >= 0;
        }

        /// <summary>The gaze of a row; only where Kind is Gaze.</summary>
        public GazeSample Gaze(int row)
        {
            return new GazeSample
            {
                X = Named("gaze_x", row, float.NaN),
                Y = Named("gaze_y", row, float.NaN),
                Error = Named("gaze_error", row, float.NaN),
                Lost = Named("lost", row, 0f),
                Time = At + row * Dt,
            };
        }

        /// <summary>The likeliest word of a row; only where Kind is Words.</summary>
        public string Word(int row)
        {
            int likeliest = 0;
            for (int i = 1; i < Description.Names.Length; i++) if (Value(i, row) > Value(likeliest, row)) likeliest = i;
            return Description.Names[likeliest];
        }

        float Named(string name, int row, float otherwise)
        {
            int feature = Description.IndexOf(name);
            return feature < 0 ? otherwise : Value(feature, row);
        }
    }
}
