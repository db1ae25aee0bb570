using System;
using System.IO;
using UnityEngine;
using UnityEngine.Events;

namespace Eyestream
{
    [Serializable] public sealed class ChunkEvent : UnityEvent<Chunk> { }
    [Serializable] public sealed class GazeEvent : UnityEvent<GazeSample> { }
    [Serializable] public sealed class StatusEvent : UnityEvent<StreamStatus> { }
    [Serializable] public sealed class BudgetEvent : UnityEvent<Budget> { }
    [Serializable] public sealed class DescriptionEvent : UnityEvent<StreamDescription> { }
    [Serializable] public sealed class FaultEvent : UnityEvent<Fault> { }

    /// <summary>Receives one stream of one device while it is enabled. All events come on the main thread, from Update.</summary>
    [AddComponentMenu("Eyestream/Eyestream Client")]
    public sealed class EyestreamClient : MonoBehaviour
    {
        [Header("The private broker")]
        [Tooltip("A name or an address, without mqtt://")]
        public string host = "localhost";
        [Tooltip("Usually 1883, or 8883 with TLS")]
        public int port = 1883;
        public bool tls;
        [Tooltip("SHA-256 of the broker's certificate, in hexadecimal digits. Empty: the system's authorities decide.")]
        public string pinnedSha256 = "";
        public string user = "";
        [Tooltip("A file below Application.persistentDataPath whose first line is the password. No scene keeps a password.")]
        public string passwordFile = "";

        [Header("What is received")]
        [Tooltip("The pseudonym of the headset: eyestream devices --broker URL lists them")]
        public string device = "hmd-1";
        [Tooltip("features, gaze, or what the operator has named")]
        public string stream = "gaze";
        [Tooltip("The sidecar's name, to hear when it dies without a word. May be empty.")]
        public string sidecar = "";

        [Header("Events")]
        public ChunkEvent onChunk = new ChunkEvent();
        [Tooltip("For each slot of a stream of gaze")]
        public GazeEvent onGaze = new GazeEvent();
        public StatusEvent onStatus = new StatusEvent();
        public BudgetEvent onBudget = new BudgetEvent();
        [Tooltip("Names, units, errors, and the guarantee in words")]
        public DescriptionEvent onDescribed = new DescriptionEvent();
        [Tooltip("What keeps chunks from coming. It is also a warning in the console.")]
        public FaultEvent onFault = new FaultEvent();

        /// <summary>The password, where a program sets it before the component is enabled; it goes before passwordFile.</summary>
        [NonSerialized] public string password = "";

        /// <summary>What is known of the stream now; null while the component is disabled.</summary>
        public Feed Feed { get; private set; }
        /// <summary>The newest chunk; null before the first one.</summary>
        public Chunk LastChunk { get; private set; }
        /// <summary>Time.unscaledTime when LastChunk came.</summary>
        public float LastChunkCame { get; private set; }

        void OnEnable()
        {
            var place = new BrokerPlace { Host = host, Port = port, Tls = tls, PinnedSha256 = pinnedSha256, User = user, Password = password };
            string wrong = ReadPassword(place);
            Feed = new Feed(wrong.Length > 0 ? null : place, device, stream, sidecar);
            Feed.OnChunk += Came;
            Feed.OnStatus += onStatus.Invoke;
            Feed.OnBudget += onBudget.Invoke;
            Feed.OnDescribed += onDescribed.Invoke;
            Feed.OnFault += Warn;
            if (wrong.Length > 0) Feed.Fault(new Fault(FaultKind.Settings, wrong));
        }

        void OnDisable()
        {
            if (Feed != null) Feed.Dispose();
            Feed = null;
        }

        void Update() { if (Feed != null) Feed.Pump(); }

        /// <summary>Put the password of the file into `place`; what was wrong, or nothing.</summary>
        string ReadPassword(BrokerPlace place)
        {
            if (passwordFile.Length == 0 || password.Length > 0) return "";
            string path = Path.Combine(Application.persistentDataPath, passwordFile);
            try
            {
                using (var reader = File.OpenText(path)) place.Password = (reader.ReadLine() ?? "").Trim();
            }
            catch (IOException fault) { return "the file with the password: " + fault.Message; }
            catch (UnauthorizedAccessException fault) { return "the file with the password: " + fault.Message; }
            return place.Password.Length > 0 ? "" : "the file with the password, " + path + ", has an empty first line";
        }

        void Came(Chunk chunk)
        {
            LastChunk = chunk;
            LastChunkCame = Time.unscaledTime;
            onChunk.Invoke(chunk);
            for (int row = 0; chunk.Kind == ChunkKind.Gaze && row < chunk.Rows; row++) onGaze.Invoke(chunk.Gaze(row));
        }

        void Warn(Fault fault)
        {
            Debug.LogWarning("eyestream: " + fault, this);
            onFault.Invoke(fault);
        }

        /// <summary>The direction of a release in the coordinates of the head: x to the right, y up, z ahead; of length 1.</summary>
        public static Vector3 Direction(GazeSample sample)
        {
            float azimuth = sample.X * Mathf.Deg2Rad, elevation = sample.Y * Mathf.Deg2Rad, ahead = Mathf.Cos(elevation);
            return new Vector3(ahead * Mathf.Sin(azimuth), Mathf.Sin(elevation), ahead * Mathf.Cos(azimuth));
        }
    }
}
